package service

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer/keys"
)

// es256Half is the size of r and of s in a signature (RFC 7518, section 3.4), in bytes.
const es256Half = 32

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
		raw, err = joined(raw)
	}
	if err != nil {
		return "", "", fmt.Errorf("sign with key %s: %w", key.ID, err)
	}
	return header, base64.RawURLEncoding.EncodeToString(raw), nil
}

// joined turns an ECDSA signature as ASN.1 into r and s one after the other.
func joined(der []byte) ([]byte, error) {
	var parts struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(der, &parts); err != nil || len(rest) > 0 {
		return nil, errors.New("the key gave no ECDSA signature")
	}
	if parts.R.Sign() <= 0 || parts.S.Sign() <= 0 || parts.R.BitLen() > 8*es256Half || parts.S.BitLen() > 8*es256Half {
		return nil, errors.New("the key gave a signature of another curve")
	}
	raw := make([]byte, 2*es256Half)
	parts.R.FillBytes(raw[:es256Half])
	parts.S.FillBytes(raw[es256Half:])
	return raw, nil
}
