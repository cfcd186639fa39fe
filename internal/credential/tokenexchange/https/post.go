// Package https sends one form to a token endpoint. In go a form with its client's credentials, and the authorities that the server
// is verified with; out comes the answer as it is. It follows no redirect, reads no more than a bounded part of an answer, and
// keeps no connection. It is apart from the exchange so that a program that only reads stored credentials starts without it.
package https

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

	"github.com/credence-id/credence/internal/credential/file"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// Poster is the way over the network.
type Poster struct{}

// Post implements tokenexchange.Poster.
func (Poster) Post(ctx context.Context, form tokenexchange.Form) (status int, body []byte, err error) {
	client, err := client(form.CAFile)
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, form.Endpoint, strings.NewReader(form.Values.Encode()))
	if err != nil {
		return 0, nil, errors.New("the token endpoint is not a URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if form.User != "" {
		// RFC 6749 section 2.3.1: both are encoded as in a form first.
		request.SetBasicAuth(url.QueryEscape(form.User), url.QueryEscape(form.Password.Reveal()))
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, explain(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > maxAnswer {
		return 0, nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return response.StatusCode, body, nil
}

// client is for one request.
func client(caFile string) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		data, err := file.Content(caFile, file.MaxAuthorities)
		if err != nil {
			return nil, fmt.Errorf("read the authorities: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("read the authorities: no PEM certificate in %s", caFile)
		}
	}
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		// The form is for this endpoint alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// explain adds advice to frequent errors.
func explain(err error) error {
	// The URL is named already.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w: name the file with the certificate of the server's authority", err)
	}
	return err
}
