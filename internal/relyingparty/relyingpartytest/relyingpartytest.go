// Package relyingpartytest has what tests of relying parties share: keys, servers that log nothing, and tokens whose claims and headers a
// test can spoil. It is for tests only, and verifies nothing.
package relyingpartytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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

	"github.com/credence-id/credence/test/testkit"
)

// RSAKey returns the RSA key of this process: RSA keys are slow to make.
var RSAKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// NewECKey makes a key for ES256.
func NewECKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// NewServer returns a server that is not started. A client that refuses its certificate is part of the tests, and is not logged.
func NewServer(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	return server
}

// Claims returns the claims of a good token with changes, in their order. A nil value removes a claim.
func Claims(issuer string, now time.Time, changes ...map[string]any) map[string]any {
	claims := map[string]any{
		"iss": issuer, "sub": "gardener.cloud:workloadidentity:ns:name:uid", "aud": []string{"one", "two"}, "jti": "id",
		"iat": now.Add(-time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Marshal encodes claims.
func Marshal(t testing.TB, claims map[string]any) []byte {
	t.Helper()
	payload := testkit.Need(json.Marshal(claims))(t)
	return payload
}

// Sign signs a payload under a key ID, with more headers. An empty ID is left out of the header.
func Sign(t testing.TB, key crypto.Signer, keyID string, payload []byte, headers map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	for name, value := range headers {
		options = options.WithHeader(jose.HeaderKey(name), value)
	}
	signer := testkit.Need(jose.NewSigner(jose.SigningKey{Algorithm: algorithmOf(key), Key: key}, options))(t)
	signed := testkit.Need(signer.Sign(payload))(t)
	token := testkit.Need(signed.CompactSerialize())(t)
	return token
}

func algorithmOf(key crypto.Signer) jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P384() {
			return jose.ES384
		}
	}
	return jose.ES256
}
