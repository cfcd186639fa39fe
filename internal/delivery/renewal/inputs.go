package renewal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Inputs are what a token, and the configuration beside it, are made from.
type Inputs struct {
	UID       string                  `json:"uid"`
	Issuer    string                  `json:"issuer"`
	Audiences []string                `json:"audiences"`
	Config    []byte                  `json:"config,omitempty"`
	Context   *v1alpha1.ContextObject `json:"context,omitempty"`
}

// Digest is what is kept of inputs beside a token, to see that they have changed: it says nothing of them.
func (i Inputs) Digest() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings and bytes always have a JSON form
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
