package relyingparty

import (
	"github.com/credence-id/credence/internal/identity"
)

// Reason names one kind of thing that is wrong with a token.
type Reason string

// The reasons for which a token is refused.
const (
	Malformed     Reason = "Malformed"     // it cannot be decoded, or its header requires an extension
	WrongIssuer   Reason = "WrongIssuer"   // iss, or the issuer in the discovery document, is not the wanted issuer
	WrongAudience Reason = "WrongAudience" // aud does not contain the wanted audience
	Expired       Reason = "Expired"       // exp is in the past
	MissingExpiry Reason = "MissingExpiry" // there is no exp
	NotYetValid   Reason = "NotYetValid"   // nbf is in the future
	BadAlgorithm  Reason = "BadAlgorithm"  // alg is not accepted, not published, or not that of the key
	UnknownKey    Reason = "UnknownKey"    // the issuer publishes no usable key with this kid
	BadSignature  Reason = "BadSignature"  // the published key did not make the signature
)

// Finding is one thing that is wrong with a token.
type Finding struct {
	Reason Reason `json:"reason"`
	// Detail is a sentence for people, with what was wanted and what the token has.
	Detail string `json:"detail"`
	// Has are the token's values: its issuer, audiences, algorithm or key ID, or a time (RFC 3339).
	Has []string `json:"has,omitempty"`
	// Wanted is what would have been accepted: the issuer, audience, algorithms or published key IDs; beside a time, the
	// time of the check (RFC 3339).
	Wanted []string `json:"wanted,omitempty"`
}

// Result is the judgement of a token.
type Result struct {
	// Inspection has the token's claims. Trust them only if Valid.
	Inspection Inspection
	// Issuer is the issuer that the token was verified with; IssuerFromToken reports whether the token itself named it: then a
	// valid signature proves who signed and not that the signer can be trusted.
	Issuer          identity.Issuer
	IssuerFromToken bool
	// Audience is the audience that was wanted; empty: any was accepted.
	Audience string
	// Findings is everything that is wrong with the token.
	Findings []Finding

	signed bool // a published key of the issuer made the signature
}

// Valid reports whether the issuer signed the token and there are no findings.
func (r Result) Valid() bool { return r.signed && len(r.Findings) == 0 }

// OutageError: a token could not be verified, because a document of its issuer could not be read. The token may be
// valid.
type OutageError struct {
	// Document is "discovery document" or "key set"; URL is where it was looked for.
	Document, URL string
	Err           error
}

func (e *OutageError) Error() string {
	return "read the " + e.Document + " at " + e.URL + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OutageError) Unwrap() error { return e.Err }
