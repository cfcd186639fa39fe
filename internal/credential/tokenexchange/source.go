package tokenexchange

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
)

// Authentication is the method by which the client authenticates (RFC 6749 section 2.3).
type Authentication string

const (
	// None: the client name at most.
	None Authentication = "none"
	// Basic: by its name and secret, in a header.
	Basic Authentication = "basic"
	// Post: name and secret in the form. For servers without another method.
	Post Authentication = "post"
)

// Source is what is exchanged, where, and for what.
type Source struct {
	// Endpoint is the URL of the server's token endpoint: https, or http on this machine.
	Endpoint string
	// SubjectTokenFile is read anew for each exchange.
	SubjectTokenFile string
	// SubjectTokenType is what kind of token it is. Empty: JWT.
	SubjectTokenType string
	// RequestedTokenType is the requested type. Empty: the server chooses.
	RequestedTokenType string
	// Resources, Audiences and Scopes limit the new token. Resources are absolute URIs without a fragment.
	Resources, Audiences, Scopes []string
	// Authentication of the client. Empty: None.
	Authentication Authentication
	// ClientID is the name of the client; it may be empty with None.
	ClientID string
	// ClientSecretFile has the client's secret, which must not be open to others; only with Basic and Post.
	ClientSecretFile string
	// CAFile has the PEM certificates that the server's is verified with. Empty: those of the system.
	CAFile string
	// Timeout of an exchange. 0: DefaultTimeout.
	Timeout time.Duration
	// Poster is the way to the server; required by Obtain.
	Poster Poster
	// Now is the clock; required by Obtain.
	Now func() time.Time

	// keyed is the subject of the last Key, or nil.
	keyed *string
}

// DefaultTimeout is how long an exchange may take.
const DefaultTimeout = 30 * time.Second

// Key implements credential.Source. The subject is part of it: with another subject's token in the file, the first one's credential
// is not served, and Obtain refuses to store another under its key.
func (s *Source) Key() map[string]string {
	subject := ""
	if token, err := file.Read(s.SubjectTokenFile); err == nil {
		subject = subjectOf(token)
	}
	s.keyed = &subject
	key := map[string]string{"source": "token-exchange", "endpoint": s.Endpoint, "subjectTokenFile": s.SubjectTokenFile, "subject": subject}
	for name, value := range map[string]string{
		"subjectTokenType": s.SubjectTokenType, "requestedTokenType": s.RequestedTokenType, "authentication": string(s.Authentication),
		"clientID": s.ClientID, "clientSecretFile": s.ClientSecretFile, "caFile": s.CAFile,
		// None of these can hold a line feed: such a request is refused.
		"resources": strings.Join(s.Resources, "\n"), "audiences": strings.Join(s.Audiences, "\n"), "scopes": strings.Join(s.Scopes, "\n"),
	} {
		if value != "" {
			key[name] = value
		}
	}
	return key
}

// subjectOf names the subject of a token, if it has one, or is a digest of the token.
func subjectOf(token credential.Secret) string {
	if claims, ok := credential.Unverified(token); ok && claims.Subject != "" {
		return claims.Issuer + " " + claims.Subject
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token.Reveal())))
}

// Obtain implements credential.Source. The error is ErrRefused if the server refuses for good.
func (s *Source) Obtain(ctx context.Context, _ credential.Request) (credential.Credential, json.RawMessage, error) {
	if err := s.Check(); err != nil {
		return credential.Credential{}, nil, fmt.Errorf("exchange token: %w", err)
	}
	got, err := s.exchange(ctx)
	if err != nil {
		return credential.Credential{}, nil, fmt.Errorf("exchange token at %s: %w", s.Endpoint, err)
	}
	return got, nil, nil
}

func (s *Source) exchange(ctx context.Context) (credential.Credential, error) {
	subject, err := s.subjectToken()
	if err != nil {
		return credential.Credential{}, err
	}
	var secret credential.Secret
	if s.ClientSecretFile != "" {
		if secret, err = file.ReadPrivate(s.ClientSecretFile); err != nil {
			return credential.Credential{}, err
		}
	}
	timeout := cmp.Or(s.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// From before the request, so that the lifetime ends rather too early than too late.
	started := s.Now()
	status, body, err := s.Poster.Post(ctx, s.form(subject, secret))
	if err != nil {
		return credential.Credential{}, err
	}
	if status != 200 {
		return credential.Credential{}, refusal(status, body, subject, secret)
	}
	return s.read(body, started)
}

func (s *Source) subjectToken() (credential.Secret, error) {
	token, err := file.Read(s.SubjectTokenFile)
	if err != nil {
		return credential.Secret{}, fmt.Errorf("read the token to exchange: %w", err)
	}
	if s.keyed != nil && *s.keyed != subjectOf(token) {
		// It may have been waited for another process meanwhile.
		return credential.Secret{}, fmt.Errorf("the token in %s is of another subject than a moment ago: try again", s.SubjectTokenFile)
	}
	claims, _ := credential.Unverified(token)
	if now := s.Now(); !claims.Expires.IsZero() && !now.Before(claims.Expires) {
		return credential.Secret{}, fmt.Errorf("the token in %s expired at %s, and now is %s: whatever renews the file has stopped, or the clock is wrong",
			s.SubjectTokenFile, claims.Expires.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return token, nil
}
