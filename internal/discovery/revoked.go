package discovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Revoked is a key that was revoked, as it is remembered beside the documents (RevokedKey).
type Revoked struct {
	ID        identity.KeyID     `json:"kid"`
	Algorithm identity.Algorithm `json:"alg"`
	// At is the time of the revocation, in UTC.
	At time.Time `json:"revokedAt"`
}

// maxRevokedBytes is far more than a ring remembers.
const maxRevokedBytes = 512 << 10

// EncodeRevoked gives a list as the text of RevokedKey; equal lists give equal texts.
func EncodeRevoked(all []Revoked) string {
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings and times alone
	}
	return string(text)
}

// ParseRevoked returns the list in a text of RevokedKey; nil if it is empty.
func ParseRevoked(text string) ([]Revoked, error) {
	var all []Revoked
	switch {
	case text == "":
		return nil, nil
	case len(text) > maxRevokedBytes:
		return nil, fmt.Errorf("%s has more than %d bytes", RevokedKey, maxRevokedBytes)
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("decode %s: %w", RevokedKey, err)
	}
	if slices.ContainsFunc(all, func(r Revoked) bool { return r.ID == "" || r.Algorithm == "" }) {
		return nil, fmt.Errorf("decode %s: a key has no kid or no alg", RevokedKey)
	}
	return all, nil
}
