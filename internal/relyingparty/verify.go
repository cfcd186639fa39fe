package relyingparty

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Options are the requirements of a token. The zero value verifies a token by the issuer that it names, for any audience.
type Options struct {
	// Client fetches the documents of the issuer. nil: a client with the certificate authorities of this machine.
	Client *http.Client
	// Issuer is the issuer that the token must be of. Empty: the one in its iss claim, and Result.IssuerFromToken is set.
	Issuer identity.Issuer
	// Audience must be among the audiences of the token. Empty: any audience is accepted.
	Audience string
	// Clock returns the time of the check. nil: time.Now.
	Clock func() time.Time
	// Leeway is how far the clocks of issuer and verifier may differ, for exp and nbf.
	Leeway time.Duration
}

// Verify verifies a token by its issuer's discovery document and keys (OpenID Connect Discovery 1.0, section 4; RFC 7519,
// section 7.2). The faults of the token are in the findings of the result. The error is an OutageError: the issuer's
// documents could not be read; the findings made without them are in the result all the same, and one of them is enough
// to refuse the token.
func Verify(ctx context.Context, token string, options Options) (Result, error) {
	result := Result{Issuer: options.Issuer, Audience: options.Audience}
	inspected, err := Inspect(token)
	if err != nil {
		return result.with(Finding{Reason: Malformed, Detail: err.Error()}), nil
	}
	result.Inspection = inspected
	if result.Issuer == "" {
		result.IssuerFromToken = true
		if result.Issuer, err = identity.ParseIssuer(inspected.Issuer); err != nil {
			return result.with(Finding{
				Reason: WrongIssuer, Detail: "the token names no issuer whose keys can be fetched: " + err.Error(),
				Has: []string{inspected.Issuer},
			}), nil
		}
	}
	if inspected.extensions {
		result = result.with(Finding{Reason: Malformed, Detail: "the header of the token requires an extension (crit), and extensions are not supported"})
	}
	want := wants{issuer: result.Issuer, audience: options.Audience, now: options.now(), leeway: options.Leeway}
	result = result.with(checkClaims(inspected, want)...)
	return result.againstIssuer(ctx, options.Client, token)
}

func (o Options) now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock()
}

// againstIssuer adds the findings by the documents of the issuer.
func (r Result) againstIssuer(ctx context.Context, client *http.Client, token string) (Result, error) {
	config, err := read(ctx, client, "discovery document", r.Issuer.ConfigurationURL(), maxConfiguration, parseConfiguration)
	if err != nil {
		return r.with(checkAlgorithm(r.Inspection, nil)...), err
	}
	algorithm := checkAlgorithm(r.Inspection, config.algorithms)
	r = r.with(algorithm...)
	if config.issuer != string(r.Issuer) {
		// The document is of another issuer, so its keys prove nothing about this one.
		return r.with(Finding{
			Reason: WrongIssuer,
			Detail: fmt.Sprintf("the discovery document of %q is of issuer %q", r.Issuer, config.issuer),
			Has:    []string{config.issuer}, Wanted: []string{string(r.Issuer)},
		}), nil
	}
	keys, err := read(ctx, client, "key set", config.keySetURL, maxKeySet, parseKeySet)
	if err != nil {
		return r, err
	}
	signature := checkSignature(token, r.Inspection, keys)
	r.signed = len(algorithm) == 0 && len(signature) == 0
	if len(algorithm) > 0 {
		// A signature by an unaccepted algorithm is not verified; an unknown key is still a finding.
		signature = slices.DeleteFunc(signature, func(f Finding) bool { return f.Reason != UnknownKey })
	}
	return r.with(signature...), nil
}

// with returns r with more findings; the findings of r itself stay as they are.
func (r Result) with(findings ...Finding) Result {
	r.Findings = append(r.Findings[:len(r.Findings):len(r.Findings)], findings...)
	return r
}
