package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential/file"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

const (
	// answerLimit bounds every answer of a provider, in bytes: discovery documents and key sets have some kilobytes.
	answerLimit = 1 << 20
	// requestTimeout bounds every request to a provider; those that wait for a person are not held open.
	requestTimeout = 30 * time.Second
)

// errOutage: the provider has not answered, or is temporarily unavailable.
var errOutage = errors.New("the provider cannot be used now")

// client returns the provider's HTTP client: TLS 1.2 or newer, certificates of the given file only, no redirect to another host.
func client(caFile string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  requestTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
	}
	if caFile != "" {
		pem, err := file.Content(caFile, file.MaxAuthorities)
		if err != nil {
			return nil, fmt.Errorf("read certificates of the provider: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificates of the provider: %s has no certificate in PEM", caFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: staysThere}, nil
}

// staysThere allows the few redirects that lead nowhere else: a provider's document must come from the provider.
func staysThere(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if via[0].Method != http.MethodGet || next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return fmt.Errorf("it redirects to %s://%s, which is not followed", next.URL.Scheme, next.URL.Host)
	}
	if len(via) > 3 {
		return errors.New("it redirects again and again")
	}
	return nil
}

// send sends a request and returns status and body of the answer. It returns an errOutage if the provider itself did not answer.
func send(c *http.Client, request *http.Request) (int, []byte, error) {
	request.Header.Set("Accept", "application/json")
	response, err := c.Do(request)
	if err != nil {
		if request.Context().Err() != nil {
			return 0, nil, request.Context().Err()
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // its text would have the whole URL, query and all
		}
		return 0, nil, fmt.Errorf("%s %s: %w: %w", request.Method, place(request.URL), advised(err), errOutage)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: read the answer: %w: %w", request.Method, place(request.URL), err, errOutage)
	}
	if len(body) > answerLimit {
		return 0, nil, fmt.Errorf("%s %s: the answer is longer than %d bytes: %w", request.Method, place(request.URL), answerLimit, errOutage)
	}
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusRequestTimeout {
		return 0, nil, fmt.Errorf("%s %s: %s: %w", request.Method, place(request.URL), response.Status, errOutage)
	}
	return response.StatusCode, body, nil
}

// advised adds advice to the most frequent failure of a private provider.
func advised(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w (a file with the authority of its certificate is given by --ca-file)", err)
	}
	return err
}

// get returns the body of a document.
func get(ctx context.Context, c *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	status, body, err := send(c, request)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d: %w", place(request.URL), status, errOutage)
	}
	return body, nil
}

// place is a URL without what may be secret in it.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// issuerURL parses the URL of an issuer (OpenID Connect Discovery 1.0 section 3): no query, no fragment.
func issuerURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("no issuer: give the URL of the provider, such as https://login.example.com")
	case err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return nil, fmt.Errorf("issuer %q: it must be a URL such as https://login.example.com", text)
	case u.Scheme != "https" && (u.Scheme != "http" || !tokenendpoint.Loopback(u.Hostname())):
		return nil, fmt.Errorf("issuer %q: it must be https", text)
	}
	return u, nil
}

// endpointURL checks an address that the issuer names: it is https like the issuer, and http only from one on loopback to loopback.
func endpointURL(issuer *url.URL, name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || strings.Contains(text, "#") {
		return fmt.Errorf("%s %q is not a valid address", name, text)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !tokenendpoint.Loopback(u.Hostname()) || !tokenendpoint.Loopback(issuer.Hostname())) {
		return fmt.Errorf("%s %q is not https", name, text)
	}
	return nil
}
