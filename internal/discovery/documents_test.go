package discovery

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const testIssuer = identity.Issuer("https://identity.example.com/garden/issuer")

// The public keys of RFC 7515, appendices A.2 and A.3.
const (
	exampleN = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
	exampleX = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
	exampleY = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
)

func number(t testing.TB, s string) *big.Int {
	t.Helper()
	b := testkit.Need(base64.RawURLEncoding.DecodeString(s))(t)
	return new(big.Int).SetBytes(b)
}

func exampleKeys(t testing.TB) []identity.PublicKey {
	t.Helper()
	x, y := number(t, exampleX), number(t, exampleY)
	point := append([]byte{4}, append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)...)
	ec := testkit.Need(ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point))(t)
	var keys []identity.PublicKey
	for _, public := range []any{&rsa.PublicKey{N: number(t, exampleN), E: 65537}, ec} {
		key := testkit.Need(identity.NewPublicKey(public))(t)
		keys = append(keys, key)
	}
	return keys
}

func exampleDocuments(t testing.TB) Documents {
	t.Helper()
	documents := testkit.Need(New(testIssuer, exampleKeys(t)))(t)
	return documents
}

func TestNewWritesTheseBytes(t *testing.T) {
	keys := exampleKeys(t)
	documents := testkit.Need(New(testIssuer, keys))(t)
	wantConfiguration := `{"issuer":"https://identity.example.com/garden/issuer","jwks_uri":"https://identity.example.com/garden/issuer/jwks",` +
		`"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","RS256"]}`
	wantJWKS := `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"` + string(keys[0].ID) + `","n":"` + exampleN + `","e":"AQAB"},` +
		`{"kty":"EC","alg":"ES256","use":"sig","kid":"` + string(keys[1].ID) + `","crv":"P-256","x":"` + exampleX + `","y":"` + exampleY + `"}]}`
	if diff := cmp.Diff(wantConfiguration, string(documents.Configuration())); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantJWKS, string(documents.JWKS())); diff != "" {
		t.Errorf("key set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]identity.KeyID{keys[0].ID, keys[1].ID}, documents.KeyIDs()); diff != "" {
		t.Errorf("key IDs (-want +got):\n%s", diff)
	}
}

func TestNewIsReadByAJOSELibrary(t *testing.T) {
	keys := exampleKeys(t)
	var set jose.JSONWebKeySet
	testkit.Must(t, json.Unmarshal(exampleDocuments(t).JWKS(), &set))
	for _, key := range keys {
		found := set.Key(string(key.ID))
		if len(found) != 1 || !found[0].Valid() || !found[0].IsPublic() || found[0].Algorithm != string(key.Algorithm) || found[0].Use != "sig" {
			t.Fatalf("key %s is read as %+v", key.ID, found)
		}
		if !key.Key.(interface{ Equal(crypto.PublicKey) bool }).Equal(found[0].Key) {
			t.Errorf("key %s is read as another key", key.ID)
		}
	}
}

func TestNewKeepsCharactersOfTheIssuer(t *testing.T) {
	const issuer = identity.Issuer("https://example.com/a&b")
	documents := testkit.Need(New(issuer, exampleKeys(t)[:1]))(t)
	if !strings.Contains(string(documents.Configuration()), `"https://example.com/a&b"`) {
		t.Errorf("the issuer is not in %s byte for byte", documents.Configuration())
	}
}

func TestNewRefuses(t *testing.T) {
	keys := exampleKeys(t)
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	testkit.Must(t, err)
	wrong := keys[0]
	wrong.Algorithm = identity.ES256
	for name, test := range map[string]struct {
		issuer identity.Issuer
		keys   []identity.PublicKey
		want   string
	}{
		"no issuer":           {"", keys, "issuer is empty"},
		"plain http":          {"http://example.com", keys, "must start with https://"},
		"no keys":             {testIssuer, nil, "jwks: keys: must be an array with at least one key"},
		"the same key twice":  {testIssuer, []identity.PublicKey{keys[0], keys[0]}, "jwks: keys[1].kid"},
		"no kid":              {testIssuer, []identity.PublicKey{{Algorithm: identity.RS256, Key: keys[0].Key}}, "jwks: keys[0].kid: is missing"},
		"algorithm of others": {testIssuer, []identity.PublicKey{wrong}, "jwks: keys[0].alg: must be RS256"},
		"Ed25519":             {testIssuer, []identity.PublicKey{{ID: "a", Algorithm: "EdDSA", Key: edwards}}, `publish key "a": key type ed25519.PublicKey is not supported`},
		"P-384":               {testIssuer, []identity.PublicKey{{ID: "a", Algorithm: "ES384", Key: p384.Public()}}, "elliptic curve P-384 is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := New(test.issuer, test.keys)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if !documents.IsZero() {
				t.Error("documents came with the error")
			}
		})
	}
}

func TestDocumentsAreImmutable(t *testing.T) {
	documents := exampleDocuments(t)
	configuration, jwks := documents.Configuration(), documents.JWKS()
	parsed := testkit.Need(Parse(testIssuer, configuration, jwks))(t)
	clear(configuration)
	clear(jwks)
	clear(documents.JWKS())
	clear(documents.KeyIDs())
	if !parsed.Equal(exampleDocuments(t)) || !documents.Equal(parsed) {
		t.Error("documents changed with bytes that the caller owns")
	}
}

func TestETagsFollowTheBytes(t *testing.T) {
	one, again := exampleDocuments(t), exampleDocuments(t)
	other := testkit.Need(New(testIssuer, exampleKeys(t)[:1]))(t)
	if one.JWKSETag() != again.JWKSETag() {
		t.Error("the same bytes have different ETags")
	}
	if one.JWKSETag() == other.JWKSETag() || one.JWKSETag() == etag(one.Configuration()) {
		t.Error("different bytes have the same ETag")
	}
	if tag := one.JWKSETag(); !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) || bytes.Count([]byte(tag), []byte(`"`)) != 2 {
		t.Errorf("%s is not a strong entity tag", tag)
	}
}
