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

// Digest is a digest of inputs, to see that they have changed: it reveals nothing of them.
func (i Inputs) Digest() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings and bytes always have a JSON form
	}
	return digest(text)
}

// Seal is what is kept beside a token: a digest of that of its inputs, and of the token, so that another one in its place is noticed.
func Seal(inputs string, token []byte) string {
	return digest(append([]byte(inputs+" "), token...))
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
