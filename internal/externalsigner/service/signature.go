package service

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// sign returns the first and the last segment of the token of encoded claims.
func sign(key keys.Key, payload string) (header, signature string, err error) {
	data, err := json.Marshal(struct {
		Algorithm identity.Algorithm `json:"alg"`
		KeyID     identity.KeyID     `json:"kid"`
		Type      string             `json:"typ"`
	}{key.Algorithm, key.ID, "JWT"})
	if err != nil {
		return "", "", fmt.Errorf("encode header: %w", err)
	}
	header = base64.RawURLEncoding.EncodeToString(data)
	digest := sha256.Sum256([]byte(header + "." + payload))
	raw, err := key.Private.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err == nil && key.Algorithm == identity.ES256 {
		raw, err = issuer.RawSignature(raw)
	}
	if err != nil {
		return "", "", fmt.Errorf("sign with key %s: %w", key.ID, err)
	}
	return header, base64.RawURLEncoding.EncodeToString(raw), nil
}
