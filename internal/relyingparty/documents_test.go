package relyingparty

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

func TestParseConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		body    string
		want    configuration
		wantErr string
	}{
		"complete": {
			body: `{"issuer":"https://i","jwks_uri":"https://i/jwks","id_token_signing_alg_values_supported":["RS256","ES256"]}`,
			want: configuration{"https://i", "https://i/jwks", []string{"RS256", "ES256"}},
		},
		"no algorithms": {
			body: `{"issuer":"https://i","jwks_uri":"https://i/jwks"}`,
			want: configuration{"https://i", "https://i/jwks", []string{"RS256"}},
		},
		"not JSON":          {body: `<html>`, wantErr: "is not JSON"},
		"no issuer":         {body: `{"Issuer":"https://i","jwks_uri":"https://i/jwks"}`, wantErr: `"issuer" is missing`},
		"two issuers":       {body: `{"issuer":"https://i","issuer":"https://j","jwks_uri":"https://i/jwks"}`, wantErr: `the key "issuer" twice`},
		"no key set":        {body: `{"issuer":"https://i"}`, wantErr: `"jwks_uri" is missing`},
		"key set by http":   {body: `{"issuer":"https://i","jwks_uri":"http://i/jwks"}`, wantErr: "not an https URL"},
		"key set relative":  {body: `{"issuer":"https://i","jwks_uri":"/jwks"}`, wantErr: "not an https URL"},
		"key set no URL":    {body: `{"issuer":"https://i","jwks_uri":"https://%"}`, wantErr: "not a URL"},
		"key set userinfo":  {body: `{"issuer":"https://i","jwks_uri":"https://u:p@i/jwks"}`, wantErr: "userinfo"},
		"algorithms a text": {body: `{"issuer":"https://i","jwks_uri":"https://i/jwks","id_token_signing_alg_values_supported":"RS256"}`, wantErr: "not an array of strings"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseConfiguration([]byte(test.body))
			if !matches(err, test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(configuration{})); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseKeySetKeepsUnusableKeysWithTheReason(t *testing.T) {
	p384 := testkit.Need(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	body := testkit.Need(json.Marshal(map[string]any{"keys": []any{
		jose.JSONWebKey{KeyID: "good", Key: ecKey().Public()},
		jose.JSONWebKey{KeyID: "private", Key: ecKey()},
		jose.JSONWebKey{KeyID: "symmetric", Key: []byte("secret")},
		jose.JSONWebKey{KeyID: "encryption", Key: ecKey().Public(), Use: "enc"},
		jose.JSONWebKey{KeyID: "other algorithm", Key: rsaKey().Public(), Algorithm: "PS256"},
		jose.JSONWebKey{KeyID: "P-384", Key: p384.Public()},
		map[string]string{"kid": "unknown type", "kty": "PQ"},
		map[string]string{"kid": "broken", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
		map[string]string{"kid": "huge", "kty": "RSA", "e": "AQAB", "n": strings.Repeat("_", 2000)},
		"no object",
	}}))(t)
	got := testkit.Need(parseKeySet(body))(t)
	want := []publishedKey{
		{id: "good", algorithm: identity.ES256},
		{id: "private", unusable: "it is not a public key"},
		{id: "symmetric", unusable: "it is not a public key"},
		{id: "encryption", unusable: `its use is "enc", not signatures`},
		{id: "other algorithm", unusable: `it is published for "PS256", which is not accepted or not what its type is for`},
		{id: "P-384", unusable: "elliptic curve P-384 is not supported, use P-256"},
		{id: "unknown type", unusable: "it is not a key of a known type"},
		{id: "broken", unusable: "it is not a key of a known type"},
		{id: "huge", unusable: "it has 12000 bits, at most 8192 are accepted"},
		{unusable: "it is not a key of a known type"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(publishedKey{}), cmpopts.IgnoreFields(publishedKey{}, "key")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestParseKeySetRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"empty": ``, "no keys": `{}`, "keys null": `{"keys":null}`, "keys an object": `{"keys":{}}`, "an array": `[]`,
		"two lists": `{"keys":[],"keys":[]}`, "duplicate in a key": `{"keys":[{"kid":"a","kid":"b"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if keys, err := parseKeySet([]byte(body)); err == nil {
				t.Errorf("accepted: %v", keys)
			}
		})
	}
}

func FuzzParseConfiguration(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://i","jwks_uri":"https://i/jwks","id_token_signing_alg_values_supported":["RS256"]}`))
	f.Add([]byte(`{"issuer":"https://i","jwks_uri":"http://i"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseConfiguration(body)
		if err == nil && (!strings.HasPrefix(strings.ToLower(got.keySetURL), "https:") || len(got.algorithms) == 0) {
			t.Errorf("accepted %+v", got)
		}
	})
}

func FuzzParseKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"AA","y":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AA"}]}`))
	if body, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: ecKey().Public(), KeyID: "a"}, {Key: rsaKey().Public()}}}); err == nil {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, err := parseKeySet(body)
		if err != nil {
			return
		}
		for _, key := range keys {
			if usable := key.unusable == ""; usable != (key.algorithm != "") {
				t.Errorf("key %q: algorithm %q, unusable %q", key.id, key.algorithm, key.unusable)
			}
		}
		token := unsigned(`{"alg":"ES256"}`, `{}`)
		if findings := checkSignature(token, Inspection{Algorithm: "ES256"}, keys); len(findings) == 0 {
			t.Error("a made-up signature was accepted")
		}
	})
}

// matches reports whether err has the wanted text; empty: there must be no error.
func matches(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want)
}
