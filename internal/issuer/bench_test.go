package issuer

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
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
			prepared := testkit.Need(issuer.Prepare(request))(b)
			testkit.Must(b, testkit.Err(issuer.Sign(b.Context(), prepared)))
		}
	})

	prepared := testkit.Need(issuer.Prepare(request))(b)
	b.Run("sign", func(b *testing.B) {
		permit := testkit.Need(issuer.permit(algorithm))(b)
		b.ReportAllocs()
		for b.Loop() {
			testkit.Must(b, testkit.Err(permit.signer.sign(rand.Reader, prepared.payload)))
		}
	})

	b.Run("go-jose", func(b *testing.B) {
		options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", string(key.ID))
		signer := testkit.Need(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key.Private}, options))(b)
		claims := issuer.claims(prepared, request)
		b.ReportAllocs()
		for b.Loop() {
			payload := testkit.Need(json.Marshal(claims))(b)
			signed := testkit.Need(signer.Sign(payload))(b)
			testkit.Must(b, testkit.Err(signed.CompactSerialize()))
		}
	})

	b.Run("signature", func(b *testing.B) {
		digest := sha256.Sum256(prepared.payload)
		b.ReportAllocs()
		for b.Loop() {
			testkit.Must(b, testkit.Err(key.Private.Sign(rand.Reader, digest[:], crypto.SHA256)))
		}
	})
}
