package relyingparty

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty/relyingpartytest"
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
	rsaKey     = relyingpartytest.RSAKey
	ecKey      = sync.OnceValue(relyingpartytest.NewECKey)
	foreignKey = sync.OnceValue(relyingpartytest.NewECKey)
)

func newIssuer(t testing.TB) *testIssuer {
	issuer := &testIssuer{handle: map[string]http.HandlerFunc{}}
	issuer.server = relyingpartytest.NewServer(http.HandlerFunc(issuer.serve))
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
	return relyingpartytest.Claims(string(i.url), testNow, changes)
}

// sign signs claims under a key ID; an empty one is left out of the header.
func sign(t testing.TB, key crypto.Signer, keyID string, claims map[string]any) string {
	t.Helper()
	return signBytes(t, key, keyID, relyingpartytest.Marshal(t, claims))
}

func signBytes(t testing.TB, key crypto.Signer, keyID string, payload []byte) string {
	t.Helper()
	return relyingpartytest.Sign(t, key, keyID, payload, nil)
}

// unsigned returns a token of the two objects with the bytes "signature" as its signature.
func unsigned(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}
