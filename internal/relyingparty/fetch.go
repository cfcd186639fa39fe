package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxConfiguration and maxKeySet are in bytes. The longest discovery documents of public issuers have about 10 KiB; AWS
	// takes 100 RSA and 100 EC keys, which are about 90 KiB.
	maxConfiguration = 64 << 10
	maxKeySet        = 256 << 10

	maxRedirects = 3
	fetchTimeout = 15 * time.Second
)

// read fetches a document of an issuer, and parses it. Errors are OutageErrors.
func read[T any](ctx context.Context, client *http.Client, document, address string, limit int64, parse func([]byte) (T, error)) (T, error) {
	var parsed T
	body, _, _, err := Fetch(ctx, client, address, limit)
	if err == nil {
		parsed, err = parse(body)
	}
	if err != nil {
		return parsed, &OutageError{Document: document, URL: address, Err: err}
	}
	return parsed, nil
}

// Fetch returns what is served at an https URL: a body of at most so many bytes, and its header fields. It never leaves https, also by a
// redirect. A nil client trusts the authorities of this machine. With an error, code is the status of the answer; 0 without a complete one.
func Fetch(ctx context.Context, client *http.Client, address string, limit int64) (body []byte, header http.Header, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if !strings.HasPrefix(address, "https://") {
		return nil, nil, 0, errors.New("it is not https")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, 0, errors.New("it is not a URL that can be requested")
	}
	request.Header.Set("Accept", "application/json")
	response, err := httpsOnly(client).Do(request)
	if err != nil {
		return nil, nil, 0, WithoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, response.StatusCode, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	if body, err = io.ReadAll(io.LimitReader(response.Body, limit+1)); err != nil {
		return nil, nil, 0, err
	}
	if int64(len(body)) > limit {
		return nil, nil, response.StatusCode, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return body, response.Header, response.StatusCode, nil
}

// httpsOnly returns a client that does what client does, but never leaves https by a redirect.
func httpsOnly(client *http.Client) *http.Client {
	var strict http.Client
	if client != nil {
		strict = *client
	}
	strict.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if request.URL.Scheme != "https" {
			return fmt.Errorf("it redirects to %s, which is not https", request.URL.Redacted())
		}
		if len(via) > maxRedirects {
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		}
		return nil
	}
	return &strict
}

// WithoutURL drops the method and URL that net/http puts before an error: for errors that name the URL already.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
