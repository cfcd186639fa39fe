package discovery

import (
	"errors"
	"fmt"
)

// Reason is why documents were refused, in one word; the set is fixed, so that it can be the label of a metric.
type Reason string

// The reasons of refusals.
const (
	ReasonUnreadable Reason = "unreadable" // the source could not be read; nothing was parsed
	ReasonSize       Reason = "size"       // a document is empty or too large
	ReasonJSON       Reason = "json"       // not one JSON object with unique member names
	ReasonIssuer     Reason = "issuer"     // the issuer is not the configured one
	ReasonJWKSURI    Reason = "jwks_uri"   // the key set is at another URL
	ReasonMetadata   Reason = "metadata"   // another member of the configuration is missing or wrong
	ReasonAlgorithms Reason = "algorithms" // the algorithms listed are not those of the keys
	ReasonKeySet     Reason = "key_set"    // no keys, too many, or a kid that is missing or used twice
	ReasonKey        Reason = "key"        // a key that relying parties would refuse
	ReasonPrivate    Reason = "private"    // a member of a private key
	ReasonRevoked    Reason = "revoked"    // a key that was revoked before
)

// Reasons lists every Reason.
func Reasons() []Reason {
	return []Reason{ReasonUnreadable, ReasonSize, ReasonJSON, ReasonIssuer, ReasonJWKSURI, ReasonMetadata, ReasonAlgorithms, ReasonKeySet, ReasonKey, ReasonPrivate, ReasonRevoked}
}

// The two documents by the names that they have in errors and metrics.
const (
	configurationName = "openid-configuration"
	jwksName          = "jwks"
)

// Refusal is the error of documents that may not be served. Its text names the document, the member and the fault;
// it never holds the value of a key's member other than kid.
type Refusal struct {
	Reason   Reason
	Document string // openid-configuration or jwks
	Member   string // path of the member, such as keys[1].kid; empty for the document as a whole
	Detail   string
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Member == "" {
		return r.Document + ": " + r.Detail
	}
	return r.Document + ": " + r.Member + ": " + r.Detail
}

// ReasonOf returns the reason of a refusal, and ReasonUnreadable for any other error.
func ReasonOf(err error) Reason {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Reason
	}
	return ReasonUnreadable
}

func refuse(reason Reason, document, member, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Document: document, Member: member, Detail: fmt.Sprintf(format, args...)}
}
