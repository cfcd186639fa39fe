package tokenexchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/credence-id/credence/internal/credential"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

const grantType = "urn:ietf:params:oauth:grant-type:token-exchange"

// post sends one request (RFC 8693 section 2.1), and returns the answer.
func (s *Source) post(ctx context.Context, subject, secret credential.Secret) (status int, body []byte, err error) {
	client, err := s.client()
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, strings.NewReader(s.form(subject, secret).Encode()))
	if err != nil {
		return 0, nil, errors.New("the token endpoint is not a URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if s.Authentication == Basic {
		// RFC 6749 section 2.3.1: both are encoded as in a form first.
		request.SetBasicAuth(url.QueryEscape(s.ClientID), url.QueryEscape(secret.Reveal()))
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

func (s *Source) form(subject, secret credential.Secret) url.Values {
	form := url.Values{"grant_type": {grantType}, "subject_token": {subject.Reveal()}, "subject_token_type": {s.SubjectTokenType}}
	if s.SubjectTokenType == "" {
		form.Set("subject_token_type", JWT)
	}
	if s.RequestedTokenType != "" {
		form.Set("requested_token_type", s.RequestedTokenType)
	}
	if len(s.Resources) > 0 {
		form["resource"] = s.Resources
	}
	if len(s.Audiences) > 0 {
		form["audience"] = s.Audiences
	}
	if len(s.Scopes) > 0 {
		form.Set("scope", strings.Join(s.Scopes, " "))
	}
	if s.ClientID != "" && s.Authentication != Basic {
		form.Set("client_id", s.ClientID)
	}
	if s.Authentication == Post {
		form.Set("client_secret", secret.Reveal())
	}
	return form
}

// client is for one request.
func (s *Source) client() (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CAFile != "" {
		data, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authorities: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("read the authorities: no PEM certificate in %s", s.CAFile)
		}
	}
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		// What is sent is for this endpoint alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// explain says what to do about errors that people meet.
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
