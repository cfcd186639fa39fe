package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
)

// Algorithm is a JWS signature algorithm (RFC 7518, section 3.1).
type Algorithm string

// The algorithms that Credence signs with.
const (
	RS256 Algorithm = "RS256"
	ES256 Algorithm = "ES256"
)

// minRSABits is the smallest RSA modulus that RFC 7518, section 3.3 allows.
const minRSABits = 2048

// AlgorithmOf returns the algorithm that a key signs with: RS256 for RSA of 2048 bits or more, ES256 for P-256. Any other
// key (Ed25519, P-224, P-384, short RSA) is an error that names what it is: no cloud's relying party takes all of them.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits {
			return "", fmt.Errorf("RSA key has %d bits, at least %d are needed", bits, minRSABits)
		}
		return RS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("elliptic curve %s is not supported, use P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	default:
		return "", fmt.Errorf("key type %T is not supported, use RSA of at least %d bits or ECDSA P-256", public, minRSABits)
	}
}

// KeyID names a public key: base64url(SHA-256(SubjectPublicKeyInfo DER)), as Kubernetes derives its kid.
type KeyID string

// KeyIDOf returns the KeyID of a public key.
func KeyIDOf(public crypto.PublicKey) (KeyID, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return KeyID(base64.RawURLEncoding.EncodeToString(sum[:])), nil
}

// PublicKey is a public key with its name and the one algorithm that it may be used with.
type PublicKey struct {
	ID        KeyID
	Algorithm Algorithm
	Key       crypto.PublicKey
}

// NewPublicKey describes a public key; the errors are those of AlgorithmOf.
func NewPublicKey(public crypto.PublicKey) (PublicKey, error) {
	algorithm, err := AlgorithmOf(public)
	if err != nil {
		return PublicKey{}, err
	}
	id, err := KeyIDOf(public)
	if err != nil {
		return PublicKey{}, err
	}
	return PublicKey{ID: id, Algorithm: algorithm, Key: public}, nil
}
