package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
)

// session is one provider with its metadata, its keys and this program's client.
type session struct {
	Config
	document *document
	keys     *keySet
	client   *http.Client
	secret   credential.Secret
}

// newSession reads the metadata and the keys of the provider.
func newSession(ctx context.Context, c Config) (*session, error) {
	p, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if p.keys, err = loadKeys(ctx, p.client, p.document); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// connect is newSession without the keys, for requests that verify no token.
func connect(ctx context.Context, c Config) (*session, error) {
	p := &session{Config: c}
	var err error
	if c.ClientSecretFile != "" {
		if p.secret, err = file.ReadPrivate(c.ClientSecretFile); err != nil {
			return nil, err
		}
	}
	if p.client, err = client(c.CAFile); err != nil {
		return nil, err
	}
	if p.document, err = discover(ctx, p.client, c.Issuer); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *session) close() { p.client.CloseIdleConnections() }

// post sends a form as this client (RFC 6749 section 2.3.1). A status other than 200 is a *refusal, or an errOutage if it is not the
// provider's own word.
func (p *session) post(ctx context.Context, address string, form url.Values, secrets ...string) ([]byte, error) {
	basic := false
	switch {
	case p.secret.IsZero():
		form.Set("client_id", p.ClientID)
	case slices.Contains(p.document.AuthMethods, "client_secret_post") && !slices.Contains(p.document.AuthMethods, "client_secret_basic"):
		form.Set("client_id", p.ClientID)
		form.Set("client_secret", p.secret.Reveal())
	default:
		basic = true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		request.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(p.secret.Reveal()))
	}
	status, body, err := send(p.client, request)
	if err != nil {
		return nil, err
	}
	if status == http.StatusOK {
		return body, nil
	}
	refused, ok := parseRefusal(body, append(secrets, p.secret.Reveal())...)
	if !ok {
		return nil, fmt.Errorf("POST %s: status %d, and no error that OAuth knows: %w", place(request.URL), status, errOutage)
	}
	return nil, refused
}

// refusal is the provider's own no (RFC 6749 section 5.2, RFC 8628 section 3.5).
type refusal struct{ code, description string }

func (r *refusal) Error() string {
	if r.description == "" {
		return fmt.Sprintf("the provider answers %q", r.code)
	}
	return fmt.Sprintf("the provider answers %q: %s", r.code, r.description)
}

// parseRefusal reads the body of an error, without the secrets that a provider may repeat in it.
func parseRefusal(body []byte, secrets ...string) (*refusal, bool) {
	var wire struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &wire) != nil || wire.Error == "" {
		return nil, false
	}
	return &refusal{plain(without(wire.Error, secrets...)), plain(without(wire.Description, secrets...))}, true
}

// outage reports whether the refusal is temporary.
func (r *refusal) outage() bool {
	return r.code == "temporarily_unavailable" || r.code == "server_error"
}

// needsPerson reports whether the refusal means that the grant has ended, or that the user must be prompted again.
func (r *refusal) needsPerson() bool {
	return slices.Contains([]string{
		"invalid_grant", "interaction_required", "login_required", "consent_required", "account_selection_required",
	}, r.code)
}
