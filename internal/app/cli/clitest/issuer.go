package clitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/rogpeppe/go-internal/testscript"
)

// ecKey and foreignKey are made once.
var ecKey, foreignKey = sync.OnceValues(newKey), sync.OnceValues(newKey)

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// startIssuer starts $ISSUER, whose certificate is in ca.crt, and sets variables to tokens: those that it has issued, and others in
// its name. The file token has $TOKEN.
func startIssuer(ts *testscript.TestScript) {
	key, err := ecKey()
	ts.Check(err)
	foreign, err := foreignKey()
	ts.Check(err)
	mux := http.NewServeMux()
	issuer, authorities := serveTLS(ts, mux)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256","ES256"]}`, issuer, issuer+"/jwks")
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "current", Algorithm: "ES256", Use: "sig"}}})
	})
	write(ts, "ca.crt", string(authorities))
	ts.Setenv("ISSUER", issuer)
	for variable, token := range map[string]struct {
		key    *ecdsa.PrivateKey
		keyID  string
		claims map[string]any
	}{
		"TOKEN":   {key, "current", nil},
		"EXPIRED": {key, "current", map[string]any{"exp": 1782907140}},
		"FOREIGN": {foreign, "current", nil},
		"OLD_KEY": {key, "old", nil},
		"EVERYTHING": {foreign, "old", map[string]any{
			"iss": "https://other.example", "aud": []string{"third"}, "exp": 1782907140, "nbf": 1782907800,
		}},
		"BOUND": {key, "current", map[string]any{"exp": 1782912600, "kubernetes.io": map[string]any{
			"namespace": "team", "serviceaccount": map[string]any{"name": "worker", "uid": "u"},
		}}},
		"ESCAPES": {key, "current", map[string]any{"sub": "evil\x1b[2J\u009b31m\u202e", "x": "\U000e0041"}},
	} {
		claims := map[string]any{
			"iss": issuer, "sub": "gardener.cloud:workloadidentity:team:app:uid", "aud": []string{"one", "two"}, "jti": "id",
			"iat": 1782906900, "nbf": 1782906900, "exp": 1782910500,
		}
		maps.Copy(claims, token.claims)
		text, err := signClaims(token.key, token.keyID, claims)
		ts.Check(err)
		ts.Setenv(variable, text)
	}
	write(ts, "token", ts.Getenv("TOKEN")+"\n")
}

func signClaims(key *ecdsa.PrivateKey, keyID string, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", keyID))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
