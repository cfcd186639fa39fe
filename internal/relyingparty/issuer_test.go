package relyingparty

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
)

// testIssuer is a real TLS server with real keys; its documents are the fields, so that a test can spoil them.
type testIssuer struct {
	server        *httptest.Server
	url           identity.Issuer
	configuration map[string]any
	keySet        jose.JSONWebKeySet
	handle        map[string]http.HandlerFunc // replaces what is served under a path
}

var testNow = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

var (
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		return key
	})
	ecKey      = sync.OnceValue(newECKey)
	foreignKey = sync.OnceValue(newECKey)
)

func newECKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newIssuer(t testing.TB) *testIssuer {
	issuer := &testIssuer{handle: map[string]http.HandlerFunc{}}
	issuer.server = httptest.NewUnstartedServer(http.HandlerFunc(issuer.serve))
	// A client that refuses the certificate is part of the tests, and need not be logged.
	issuer.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	issuer.server.StartTLS()
	t.Cleanup(issuer.server.Close)
	issuer.url = identity.Issuer(issuer.server.URL)
	issuer.configuration = map[string]any{
		"issuer":                                string(issuer.url),
		"jwks_uri":                              issuer.url.JWKSURL(),
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256"},
	}
	issuer.keySet.Keys = []jose.JSONWebKey{
		{Key: rsaKey().Public(), KeyID: "rsa", Algorithm: "RS256", Use: "sig"},
		{Key: ecKey().Public(), KeyID: "ec", Algorithm: "ES256", Use: "sig"},
	}
	return issuer
}

func (i *testIssuer) serve(w http.ResponseWriter, r *http.Request) {
	if handler, ok := i.handle[r.URL.Path]; ok {
		handler(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var document any = i.configuration
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
	case "/jwks":
		document = i.keySet
	default:
		http.NotFound(w, r)
		return
	}
	if err := json.NewEncoder(w).Encode(document); err != nil {
		panic(err)
	}
}

// claims returns the claims of a good token with some of them changed; nil removes one.
func (i *testIssuer) claims(changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": string(i.url), "sub": "gardener.cloud:workloadidentity:ns:name:uid", "aud": []string{"one", "two"}, "jti": "id",
		"iat": testNow.Add(-time.Minute).Unix(), "nbf": testNow.Add(-time.Minute).Unix(), "exp": testNow.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// sign signs claims under a key ID; an empty one is left out of the header.
func sign(t testing.TB, key crypto.Signer, keyID string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return signBytes(t, key, keyID, payload)
}

func signBytes(t testing.TB, key crypto.Signer, keyID string, payload []byte) string {
	t.Helper()
	public, err := identity.AlgorithmOf(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(public), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// unsigned returns a token of the two objects with the bytes "signature" as its signature.
func unsigned(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}
