// Package network sends one request with secrets to one server. In go the request, and the authorities that the server is verified with; out
// comes the answer as it is. It follows no redirect, reads no more than a bounded part of an answer, and keeps no connection.
package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// Send returns the answer to a request. authorities are PEM certificates; empty: those of the system. Errors do not have the URL.
func Send(request *http.Request, authorities []byte) (status int, body []byte, err error) {
	client, err := client(authorities)
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
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
func client(authorities []byte) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authorities) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("the file of authorities has no PEM certificate")
		}
	}
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		// The request is for this server alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// explain adds advice to frequent errors.
func explain(err error) error {
	// The URL is named already, and may have a query.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: name the file with the certificate of the server's authority", err)
	}
	return err
}
