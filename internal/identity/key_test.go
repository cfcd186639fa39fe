package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// The kid was computed with: openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | basenc --base64url
const (
	knownKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE47YpJGcJn0OL8iFvvGkSfR4aMEq5
kCll0SDZAOCyaZnEEJwxXo5ejWtzcpF0BgxXY9sQNQGu3owz52txwGG8/g==
-----END PUBLIC KEY-----
`
	knownKeyID KeyID = "HtkntL7VAKtjFhL29fyPOhJZX_X6auVUkMTbwjPoIQg"
)

func TestKeyIDIsTheHashOfThePublicKey(t *testing.T) {
	block, _ := pem.Decode([]byte(knownKey))
	public := testkit.Need(x509.ParsePKIXPublicKey(block.Bytes))(t)
	got := testkit.Need(NewPublicKey(public))(t)
	if got.ID != knownKeyID || got.Algorithm != ES256 || got.Key != public {
		t.Errorf("got %v, want %s for ES256", got, knownKeyID)
	}
}

func TestAlgorithmOf(t *testing.T) {
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	cases := []struct {
		name   string
		public crypto.PublicKey
		want   Algorithm
		// refusal is part of the error where there is no algorithm.
		refusal string
	}{
		{"RSA of 2048 bits", newRSA(t, 2048), RS256, ""},
		{"P-256", newECDSA(t, elliptic.P256()), ES256, ""},
		{"RSA of 2047 bits", newRSA(t, 2047), "", "2047 bits, at least 2048"},
		{"RSA of 1024 bits", newRSA(t, 1024), "", "1024 bits, at least 2048"},
		{"P-224", newECDSA(t, elliptic.P224()), "", "P-224"},
		{"P-384", newECDSA(t, elliptic.P384()), "", "P-384"},
		{"P-521", newECDSA(t, elliptic.P521()), "", "P-521"},
		{"Ed25519", edwards, "", "ed25519.PublicKey"},
		{"an RSA key by value", *newRSA(t, 2048), "", "rsa.PublicKey"},
		{"nothing", nil, "", "<nil>"},
	}
	for _, c := range cases {
		got, err := AlgorithmOf(c.public)
		if got != c.want || (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%s: %q, %v, want %q and an error with %q", c.name, got, err, c.want, c.refusal)
		}
		if _, err := NewPublicKey(c.public); (err == nil) != (c.refusal == "") {
			t.Errorf("%s as a public key: %v", c.name, err)
		}
	}
}

func newRSA(t *testing.T, bits int) *rsa.PublicKey {
	t.Helper()
	key := testkit.Need(rsa.GenerateKey(rand.Reader, bits))(t)
	return &key.PublicKey
}

func newECDSA(t *testing.T, curve elliptic.Curve) *ecdsa.PublicKey {
	t.Helper()
	key := testkit.Need(ecdsa.GenerateKey(curve, rand.Reader))(t)
	return &key.PublicKey
}
