package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

const (
	// maxConfiguration and maxKeySet are in bytes. The longest discovery documents of public issuers have about 10 KiB; AWS
	// takes 100 RSA and 100 EC keys, which are about 90 KiB.
	maxConfiguration = 64 << 10
	maxKeySet        = 256 << 10

	maxRedirects = 3
	fetchTimeout = 15 * time.Second
)

// fetchConfiguration returns the discovery document of an issuer, or an OutageError.
func fetchConfiguration(ctx context.Context, client *http.Client, issuer identity.Issuer) (configuration, error) {
	const document = "discovery document"
	address := issuer.ConfigurationURL()
	body, err := fetch(ctx, client, address, maxConfiguration)
	if err != nil {
		return configuration{}, &OutageError{Document: document, URL: address, Err: err}
	}
	parsed, err := parseConfiguration(body)
	if err != nil {
		return configuration{}, &OutageError{Document: document, URL: address, Err: err}
	}
	return parsed, nil
}

// fetchKeySet returns the published keys of an issuer, or an OutageError.
func fetchKeySet(ctx context.Context, client *http.Client, address string) ([]publishedKey, error) {
	const document = "key set"
	body, err := fetch(ctx, client, address, maxKeySet)
	if err != nil {
		return nil, &OutageError{Document: document, URL: address, Err: err}
	}
	keys, err := parseKeySet(body)
	if err != nil {
		return nil, &OutageError{Document: document, URL: address, Err: err}
	}
	return keys, nil
}

func fetch(ctx context.Context, client *http.Client, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("it is not a URL that can be requested")
	}
	request.Header.Set("Accept", "application/json")
	response, err := HTTPSOnly(client).Do(request)
	if err != nil {
		return nil, WithoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return body, nil
}

// HTTPSOnly returns a client that does what client does, but never leaves https, also by a redirect. nil
// stands for a client that trusts the authorities of this machine.
func HTTPSOnly(client *http.Client) *http.Client {
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
