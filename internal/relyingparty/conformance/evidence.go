package conformance

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/strictjson"
)

// The sizes, in bytes, are those at which internal/relyingparty stops to read.
const (
	maxConfiguration = 64 << 10
	maxKeySet        = 256 << 10
	maxRedirects     = 3
)

// evidence is all that was seen of an issuer. Checks are functions of it.
type evidence struct {
	now    time.Time
	issuer string // as given
	urlErr error  // why nothing could be fetched from it
	// configuration is the discovery document, keySet the document at its jwks_uri.
	configuration, keySet document
	keys                  []publishedKey
	token                 tokenEvidence
}

// document is what was seen of one of the two documents.
type document struct {
	url   string // empty: unknown, so that nothing was fetched
	limit int
	// first and second are the same request twice; conditional has the ETag of the first, and is nil without one.
	first, second, conditional *exchange
	// members is the document itself; jsonErr is set if it is not one JSON object that all parsers read alike.
	members map[string]json.RawMessage
	jsonErr error
}

// exchange is one request with the answer at the end of its redirects.
type exchange struct {
	err       error
	status    int
	header    http.Header
	body      []byte // one byte more than the limit at most
	elapsed   time.Duration
	redirects []string // the URLs that were redirected to, one after the other
	tls       *tls.ConnectionState
}

// gather requests everything that the checks need.
func gather(ctx context.Context, options Options) *evidence {
	e := &evidence{now: options.Clock(), issuer: options.Issuer}
	e.configuration.limit, e.keySet.limit = maxConfiguration, maxKeySet
	base, err := identity.ParseIssuer(withoutSlash(options.Issuer))
	if err != nil {
		e.urlErr = err
	} else {
		fetcher := newFetcher(options)
		e.configuration.url = base.ConfigurationURL()
		fetcher.fetchAll(ctx, &e.configuration)
		if address, _ := strictjson.Text(e.configuration.members["jwks_uri"]); keySetURLError(address) == nil {
			e.keySet.url = address
			fetcher.fetchAll(ctx, &e.keySet)
		}
	}
	e.keys = publishedKeys(e.keySet.members)
	e.token = judgeToken(ctx, e, options)
	return e
}

// withoutSlash drops the one trailing slash that OpenID Connect Discovery 1.0, section 4.1 drops before it looks.
func withoutSlash(issuer string) string { return strings.TrimSuffix(issuer, "/") }

// fetcher makes requests.
type fetcher struct {
	client  http.Client
	clock   func() time.Time
	timeout time.Duration
}

func newFetcher(options Options) *fetcher {
	a := &fetcher{clock: options.Clock, timeout: options.Timeout}
	if options.Client != nil {
		a.client = *options.Client
	}
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return a
}

func (a *fetcher) fetchAll(ctx context.Context, d *document) {
	d.first = a.fetch(ctx, d.url, "", d.limit)
	if d.first.err != nil {
		return
	}
	d.second = a.fetch(ctx, d.url, "", d.limit)
	if tag := d.first.header.Get("ETag"); tag != "" {
		d.conditional = a.fetch(ctx, d.url, tag, d.limit)
	}
	if d.first.status == http.StatusOK && len(d.first.body) <= d.limit {
		d.members, d.jsonErr = relyingparty.ParseObject(d.first.body)
	}
}

// fetch follows redirects itself, and only to https, so that a report can name their targets.
func (a *fetcher) fetch(ctx context.Context, address, etag string, limit int) *exchange {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	e := &exchange{}
	start := a.clock()
	defer func() { e.elapsed = a.clock().Sub(start) }()
	for {
		next := a.once(ctx, e, address, etag, limit)
		if next == "" {
			return e
		}
		e.redirects = append(e.redirects, next)
		if !strings.HasPrefix(next, "https://") || len(e.redirects) > maxRedirects {
			return e
		}
		address = next
	}
}

// once makes one request and returns where it is redirected to.
func (a *fetcher) once(ctx context.Context, e *exchange, address, etag string, limit int) (next string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		e.err = errors.New("it is not a URL that can be requested")
		return ""
	}
	request.Header.Set("Accept", "application/json")
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	response, err := a.client.Do(request)
	if err != nil {
		e.err = relyingparty.WithoutURL(err)
		return ""
	}
	defer response.Body.Close()
	e.status, e.header, e.tls = response.StatusCode, response.Header, response.TLS
	if e.body, err = io.ReadAll(io.LimitReader(response.Body, int64(limit)+1)); err != nil {
		e.err = err
		return ""
	}
	if response.StatusCode < 300 || response.StatusCode > 399 {
		return ""
	}
	if location, err := response.Location(); err == nil {
		return location.String()
	}
	return ""
}
