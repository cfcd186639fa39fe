package issuer

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
)

func BenchmarkSignES256(b *testing.B) { benchmark(b, identity.ES256) }

func BenchmarkSignRS256(b *testing.B) { benchmark(b, identity.RS256) }

// benchmark compares, for the same claims and key: all of our way from request to token, its part after the checks, the
// same token from go-jose, and the bare signature that none can do without.
func benchmark(b *testing.B, algorithm identity.Algorithm) {
	issuer := newIssuer(b, testConfig())
	request := withServiceAccount(testRequest())
	request.TargetAlgorithm = algorithm
	key, _ := testRing().Signer(algorithm)

	b.Run("prepare+sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			prepared, err := issuer.Prepare(request)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := issuer.Sign(b.Context(), prepared); err != nil {
				b.Fatal(err)
			}
		}
	})

	prepared, err := issuer.Prepare(request)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign", func(b *testing.B) {
		permit, err := issuer.permit(algorithm)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := permit.signer.sign(rand.Reader, prepared.payload); err != nil {
				b.Fatal(err)
			}
		}
	})

	b.Run("go-jose", func(b *testing.B) {
		options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", string(key.ID))
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key.Private}, options)
		if err != nil {
			b.Fatal(err)
		}
		claims := issuer.claims(prepared, request)
		b.ReportAllocs()
		for b.Loop() {
			payload, err := json.Marshal(claims)
			if err != nil {
				b.Fatal(err)
			}
			signed, err := signer.Sign(payload)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := signed.CompactSerialize(); err != nil {
				b.Fatal(err)
			}
		}
	})

	b.Run("signature", func(b *testing.B) {
		digest := sha256.Sum256(prepared.payload)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := key.Private.Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
				b.Fatal(err)
			}
		}
	})
}
