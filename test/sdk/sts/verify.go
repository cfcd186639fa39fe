package sts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Trust is how a cloud is configured for the tokens of an identity. All values are compared byte for byte.
type Trust struct {
	Issuer, Audience, Subject string
}

// limits are those of a cloud, whatever its configuration; zero values limit nothing.
type limits struct {
	// algorithms are the signatures that it accepts.
	algorithms []string
	// token is the greatest length of a token in characters, subject that of the sub claim in bytes.
	token, subject int
	// lifetime is the longest time between iat and exp; below is true if it must be shorter than that.
	lifetime time.Duration
	below    bool
	// age is how long ago a token may have been issued.
	age time.Duration
}

// reason is why a token was refused; each cloud has a code for it.
type reason string

const (
	tooLong      reason = "the token is too long"
	malformed    reason = "the token is not a JWT"
	otherIssuer  reason = "the issuer is not trusted"
	algorithm    reason = "the algorithm is not accepted"
	unreachable  reason = "the issuer's documents can't be had"
	unverifiable reason = "no published key verifies the signature"
	notYetValid  reason = "the token is not valid yet"
	expired      reason = "the token has expired"
	tooOld       reason = "the token was issued too long ago"
	lifetime     reason = "the token is valid for too long"
	audience     reason = "the audience is another one"
	subject      reason = "the subject is another one"
	subjectSize  reason = "the subject is too long"
)

// refusal is why a token was refused. It holds the claims as far as they could be read.
type refusal struct {
	reason reason
	claims claims
	detail string
}

// tell writes what was found into a message of the cloud, where that has a place for it.
func (r *refusal) tell(message string) string { return strings.Replace(message, "%s", r.detail, 1) }

// claims are those of the registered claims (RFC 7519, section 4.1) that clouds look at, and the header.
type claims struct {
	Issuer    string    `json:"iss"`
	Subject   string    `json:"sub"`
	Audiences audiences `json:"aud"`
	IssuedAt  int64     `json:"iat"`
	NotBefore int64     `json:"nbf"`
	Expiry    int64     `json:"exp"`
	ID        string    `json:"jti"`

	KeyID, Algorithm string `json:"-"`
}

func (c claims) issuedAt() time.Time { return time.Unix(c.IssuedAt, 0).UTC() }
func (c claims) expiry() time.Time   { return time.Unix(c.Expiry, 0).UTC() }

// audiences is one string or a list of them (RFC 7519, section 4.1.3).
type audiences []string

func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// verifier finds the keys of issuers, and keeps them as clouds do: they are fetched again when a key is unknown.
type verifier struct {
	client    *http.Client
	now       func() time.Time
	mutex     sync.Mutex
	providers map[string]*oidc.Provider
}

// verify returns the claims of a token that trust and limits allow, or why they do not.
func (v *verifier) verify(ctx context.Context, token string, trust Trust, limits limits) (claims, *refusal) {
	if limits.token > 0 && len(token) > limits.token {
		return claims{}, &refusal{reason: tooLong, detail: fmt.Sprintf("%d characters", len(token))}
	}
	claims, err := read(token)
	refuse := func(reason reason, detail string) *refusal { return &refusal{reason, claims, detail} }
	switch {
	case err != nil:
		return claims, refuse(malformed, err.Error())
	case claims.Issuer != trust.Issuer:
		return claims, refuse(otherIssuer, claims.Issuer)
	case !slices.Contains(limits.algorithms, claims.Algorithm):
		return claims, refuse(algorithm, claims.Algorithm)
	}
	provider, err := v.provider(ctx, trust.Issuer)
	if err != nil {
		return claims, refuse(unreachable, err.Error())
	}
	// Here the issuer, the algorithm and the signature are verified. Audience and times come next, of claims that are
	// authentic by then, so that each has its own code.
	_, err = provider.VerifierContext(oidc.ClientContext(ctx, v.client), &oidc.Config{
		SupportedSigningAlgs: limits.algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true, Now: v.now,
	}).Verify(ctx, token)
	if err != nil {
		return claims, refuse(unverifiable, err.Error())
	}
	now := v.now()
	validFor := claims.expiry().Sub(claims.issuedAt())
	switch {
	case now.Before(time.Unix(claims.NotBefore, 0)) || now.Before(claims.issuedAt()):
		return claims, refuse(notYetValid, claims.issuedAt().Format(time.RFC3339))
	case !now.Before(claims.expiry()):
		return claims, refuse(expired, claims.expiry().Format(time.RFC3339))
	case limits.age > 0 && now.Sub(claims.issuedAt()) > limits.age:
		return claims, refuse(tooOld, now.Sub(claims.issuedAt()).String())
	case limits.lifetime > 0 && (validFor > limits.lifetime || limits.below && validFor == limits.lifetime):
		return claims, refuse(lifetime, validFor.String())
	case !slices.Contains(claims.Audiences, trust.Audience):
		return claims, refuse(audience, strings.Join(claims.Audiences, " "))
	case limits.subject > 0 && len(claims.Subject) > limits.subject:
		return claims, refuse(subjectSize, fmt.Sprintf("%d bytes", len(claims.Subject)))
	case claims.Subject != trust.Subject:
		return claims, refuse(subject, claims.Subject)
	}
	return claims, nil
}

// provider discovers an issuer once. A failed discovery is tried again by the next request.
func (v *verifier) provider(ctx context.Context, issuer string) (*oidc.Provider, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if provider := v.providers[issuer]; provider != nil {
		return provider, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), issuer)
	if err != nil {
		return nil, err
	}
	if v.providers == nil {
		v.providers = map[string]*oidc.Provider{}
	}
	v.providers[issuer] = provider
	return provider, nil
}

// read decodes a token without believing it: clouds find out by the issuer that it claims whom to ask.
func read(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, fmt.Errorf("it has %d parts", len(parts))
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var c claims
	for i, into := range []any{&header, &c} {
		decoded, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return claims{}, err
		}
		if err := json.Unmarshal(decoded, into); err != nil {
			return claims{}, err
		}
	}
	c.Algorithm, c.KeyID = header.Algorithm, header.KeyID
	return c, nil
}
