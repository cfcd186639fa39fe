package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const (
	goodConfiguration = `{"issuer":"https://identity.example.com/garden/issuer","jwks_uri":"https://identity.example.com/garden/issuer/jwks",` +
		`"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256","ES256"],"claims_supported":["sub"]}`
	goodRSA = `{"kty":"RSA","alg":"RS256","use":"sig","kid":"one","n":"` + exampleN + `","e":"AQAB"}`
	goodEC  = `{"kty":"EC","alg":"ES256","use":"sig","kid":"two","crv":"P-256","x":"` + exampleX + `","y":"` + exampleY + `"}`
	goodSet = `{"keys":[` + goodRSA + "," + goodEC + `]}`
)

func TestParseKeepsTheBytes(t *testing.T) {
	configuration, jwks := " "+goodConfiguration+"\n", "\t"+goodSet+" "
	documents := testkit.Need(Parse(testIssuer, []byte(configuration), []byte(jwks)))(t)
	if string(documents.Configuration()) != configuration || string(documents.JWKS()) != jwks {
		t.Error("the bytes are not those that were parsed")
	}
	if diff := cmp.Diff([]identity.KeyID{"one", "two"}, documents.KeyIDs()); diff != "" {
		t.Errorf("key IDs (-want +got):\n%s", diff)
	}
}

// swap replaces old by its successor in s, and fails where there is nothing to replace.
func swap(t *testing.T, s, old, successor string) string {
	t.Helper()
	if !strings.Contains(s, old) {
		t.Fatalf("%q is not in the document", old)
	}
	return strings.Replace(s, old, successor, 1)
}

func TestParseRefusesConfigurations(t *testing.T) {
	for name, test := range map[string]struct {
		old, successor string
		reason         Reason
		member         string
	}{
		"empty":                       {goodConfiguration, "", ReasonSize, ""},
		"too large":                   {`"claims_supported"`, strings.Repeat(" ", MaxDocumentBytes) + `"claims_supported"`, ReasonSize, ""},
		"truncated":                   {`"claims_supported":["sub"]}`, `"claims_supported":["sub"`, ReasonJSON, ""},
		"trailing data":               {`["sub"]}`, `["sub"]} {}`, ReasonJSON, ""},
		"not an object":               {goodConfiguration, `["issuer"]`, ReasonJSON, ""},
		"null":                        {goodConfiguration, `null`, ReasonJSON, ""},
		"not UTF-8":                   {`"sub"`, "\"\xff\"", ReasonJSON, ""},
		"byte order mark":             {`{"issuer"`, "\uFEFF" + `{"issuer"`, ReasonJSON, ""},
		"duplicate member":            {`"claims_supported"`, `"issuer":"x","claims_supported"`, ReasonJSON, ""},
		"duplicate by escape":         {`"claims_supported"`, `"\u0069ssuer":"x","claims_supported"`, ReasonJSON, ""},
		"duplicate deep down":         {`["sub"]`, `[{"a":1,"a":2}]`, ReasonJSON, ""},
		"deeply nested":               {`["sub"]`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), ReasonJSON, ""},
		"no issuer":                   {`"issuer"`, `"x"`, ReasonIssuer, "issuer"},
		"issuer in capitals":          {`"issuer"`, `"Issuer"`, ReasonIssuer, "issuer"},
		"issuer is a number":          {`"https://identity.example.com/garden/issuer",`, `1,`, ReasonIssuer, "issuer"},
		"issuer with a slash":         {`/garden/issuer",`, `/garden/issuer/",`, ReasonIssuer, "issuer"},
		"another host's issuer":       {`identity.example.com/garden/issuer",`, `evil.example.com/garden/issuer",`, ReasonIssuer, "issuer"},
		"no jwks_uri":                 {`"jwks_uri"`, `"x"`, ReasonJWKSURI, "jwks_uri"},
		"foreign jwks_uri":            {`identity.example.com/garden/issuer/jwks`, `evil.example.com/garden/issuer/jwks`, ReasonJWKSURI, "jwks_uri"},
		"jwks_uri elsewhere":          {`issuer/jwks`, `keyring/keys`, ReasonJWKSURI, "jwks_uri"},
		"jwks_uri with query":         {`issuer/jwks`, `issuer/jwks?a`, ReasonJWKSURI, "jwks_uri"},
		"no response types":           {`"response_types_supported"`, `"x"`, ReasonMetadata, "response_types_supported"},
		"response type is not a list": {`["id_token"]`, `"id_token"`, ReasonMetadata, "response_types_supported"},
		"no subject type public":      {`["public"]`, `["pairwise"]`, ReasonMetadata, "subject_types_supported"},
		"no algorithms":               {`"id_token_signing_alg_values_supported"`, `"x"`, ReasonAlgorithms, "id_token_signing_alg_values_supported"},
		"algorithms with a number":    {`["RS256","ES256"]`, `["RS256",256]`, ReasonAlgorithms, "id_token_signing_alg_values_supported"},
		"algorithm missing":           {`["RS256","ES256"]`, `["RS256"]`, ReasonAlgorithms, "id_token_signing_alg_values_supported"},
		"algorithm without key":       {`["RS256","ES256"]`, `["RS256","ES256","none"]`, ReasonAlgorithms, "id_token_signing_alg_values_supported"},
		"algorithm twice":             {`["RS256","ES256"]`, `["RS256","ES256","ES256"]`, ReasonAlgorithms, "id_token_signing_alg_values_supported"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(testIssuer, []byte(swap(t, goodConfiguration, test.old, test.successor)), []byte(goodSet))
			wantRefusal(t, err, test.reason, configurationName, test.member)
		})
	}
}

func TestParseRefusesKeySets(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = strings.Replace(goodEC, `"two"`, fmt.Sprintf(`"%d"`, i), 1)
	}
	for name, test := range map[string]struct {
		old, successor string
		reason         Reason
		member         string
	}{
		"empty":                 {goodSet, "", ReasonSize, ""},
		"not JSON":              {goodSet, "keys", ReasonJSON, ""},
		"no keys member":        {goodSet, "{}", ReasonKeySet, "keys"},
		"keys in capitals":      {`"keys"`, `"Keys"`, ReasonKeySet, `"Keys"`},
		"keys is null":          {goodSet, `{"keys":null}`, ReasonKeySet, "keys"},
		"keys is an object":     {goodSet, `{"keys":{}}`, ReasonKeySet, "keys"},
		"no key":                {goodSet, `{"keys":[]}`, ReasonKeySet, "keys"},
		"too many keys":         {goodSet, `{"keys":[` + strings.Join(many, ",") + `]}`, ReasonKeySet, "keys"},
		"more than keys":        {`{"keys"`, `{"a":1,"keys"`, ReasonKeySet, `"a"`},
		"key is a string":       {goodEC, `"x"`, ReasonKey, "keys[1]"},
		"key is null":           {goodEC, `null`, ReasonKey, "keys[1]"},
		"no kid":                {`"kid":"two",`, ``, ReasonKeySet, "keys[1].kid"},
		"empty kid":             {`"kid":"two"`, `"kid":""`, ReasonKeySet, "keys[1].kid"},
		"kid is a number":       {`"kid":"two"`, `"kid":2`, ReasonKeySet, "keys[1].kid"},
		"kid too long":          {`"two"`, `"` + strings.Repeat("k", 1025) + `"`, ReasonKeySet, "keys[1].kid"},
		"kid with a line break": {`"two"`, `"t\nwo"`, ReasonKeySet, "keys[1].kid"},
		"duplicate kid":         {`"two"`, `"one"`, ReasonKeySet, "keys[1].kid"},
		"duplicate member":      {`"kid":"two"`, `"kid":"two","kid":"three"`, ReasonJSON, ""},
		"no use":                {`"use":"sig","kid":"two"`, `"kid":"two"`, ReasonKey, "keys[1].use"},
		"use for encryption":    {`"use":"sig","kid":"two"`, `"use":"enc","kid":"two"`, ReasonKey, "keys[1].use"},
		"no alg":                {`"alg":"ES256",`, ``, ReasonKey, "keys[1].alg"},
		"alg of another key":    {`"alg":"ES256"`, `"alg":"RS256"`, ReasonKey, "keys[1].alg"},
		"RS512":                 {`"alg":"RS256"`, `"alg":"RS512"`, ReasonKey, "keys[0].alg"},
		"no kty":                {`"kty":"EC",`, ``, ReasonKey, "keys[1].kty"},
		"unknown kty":           {`"kty":"EC"`, `"kty":"OKP"`, ReasonKey, "keys[1].kty"},
		"kty in small letters":  {`"kty":"EC"`, `"kty":"ec"`, ReasonKey, "keys[1].kty"},
		"wrong curve":           {`"P-256"`, `"P-384"`, ReasonKey, "keys[1].crv"},
		"no x":                  {`"x":"` + exampleX + `",`, ``, ReasonKey, "keys[1].x"},
		"short y":               {exampleY, exampleY[:40], ReasonKey, "keys[1].y"},
		"padded y":              {exampleY, exampleY + "=", ReasonKey, "keys[1].y"},
		"y with a line break":   {exampleY, exampleY[:40] + `\n` + exampleY[40:], ReasonKey, "keys[1].y"},
		"not on the curve":      {exampleX, exampleY, ReasonKey, "keys[1]"},
		"EC with modulus":       {`"crv"`, `"n":"AQAB","crv"`, ReasonKey, "keys[1].n"},
		"RSA with curve":        {`"e":"AQAB"`, `"e":"AQAB","crv":"P-256"`, ReasonKey, "keys[0].crv"},
		"no modulus":            {`"n":"` + exampleN + `",`, ``, ReasonKey, "keys[0].n"},
		"modulus in base64":     {exampleN, strings.ReplaceAll(exampleN, "_", "/"), ReasonKey, "keys[0].n"},
		"spare bits":            {exampleN, exampleN[:341] + "R", ReasonKey, "keys[0].n"},
		"leading zeros":         {exampleN, "AAAA" + exampleN, ReasonKey, "keys[0].n"},
		"even modulus":          {exampleN, exampleN[:341] + "A", ReasonKey, "keys[0].n"},
		"short modulus":         {exampleN, strings.Repeat("gQ_B", 40), ReasonKey, "keys[0]"},
		"huge modulus":          {exampleN, strings.Repeat("gQ_B", 500), ReasonKey, "keys[0].n"},
		"no exponent":           {`"AQAB"`, `""`, ReasonKey, "keys[0].e"},
		"exponent 1":            {`"AQAB"`, `"AQ"`, ReasonKey, "keys[0].e"},
		"even exponent":         {`"AQAB"`, `"AQAA"`, ReasonKey, "keys[0].e"},
		"long exponent":         {`"AQAB"`, `"AQABAQAB"`, ReasonKey, "keys[0].e"},
		"certificate":           {`"e":"AQAB"`, `"e":"AQAB","x5c":["x"]`, ReasonKey, "keys[0]"},
		"private in capitals":   {`"e":"AQAB"`, `"e":"AQAB","D":"x"`, ReasonKey, "keys[0]"},
		"two members in one":    {`"e":"AQAB"`, `"e":"AQAB","kty alg":"x"`, ReasonKey, "keys[0]"},
		"secret of other types": {`"e":"AQAB"`, `"e":"AQAB","priv":"x"`, ReasonKey, "keys[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(testIssuer, []byte(goodConfiguration), []byte(swap(t, goodSet, test.old, test.successor)))
			wantRefusal(t, err, test.reason, jwksName, test.member)
		})
	}
}

func TestParseRefusesPrivateMembers(t *testing.T) {
	const secret = "c2VjcmV0"
	for _, member := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		for _, value := range []string{`"` + secret + `"`, `[{"r":"` + secret + `"}]`, `""`, `null`} {
			jwks := swap(t, goodSet, `"kid":"two"`, `"kid":"two","`+member+`":`+value)
			_, err := Parse(testIssuer, []byte(goodConfiguration), []byte(jwks))
			wantRefusal(t, err, ReasonPrivate, jwksName, "keys[1]."+member)
			if err == nil {
				continue
			}
			if !strings.Contains(err.Error(), `"two"`) {
				t.Errorf("%s: %q does not name the kid", member, err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error prints the secret", member)
			}
		}
	}
	_, err := Parse(testIssuer, []byte(goodConfiguration), []byte(`{"keys":[{"kty":"oct","k":"`+secret+`"}]}`))
	wantRefusal(t, err, ReasonPrivate, jwksName, "keys[0].k")
}

func TestParseRefusesAnIssuerThatIsNone(t *testing.T) {
	for _, issuer := range []identity.Issuer{"", "https://", "http://example.com", "https://example.com/"} {
		if _, err := Parse(issuer, []byte(goodConfiguration), []byte(goodSet)); err == nil {
			t.Errorf("issuer %q was taken", issuer)
		}
	}
}

func wantRefusal(t *testing.T, err error, reason Reason, document, member string) {
	t.Helper()
	refusal, ok := err.(*Refusal)
	if !ok {
		t.Fatalf("got %v, want a refusal of %s %s", err, document, member)
	}
	if diff := cmp.Diff(Refusal{Reason: reason, Document: document, Member: member, Detail: refusal.Detail}, *refusal); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	if refusal.Detail == "" || !strings.HasPrefix(err.Error(), document+": "+member) {
		t.Errorf("%q lacks the fault or its place", err)
	}
	if strings.Contains(err.Error(), exampleN[:20]) {
		t.Errorf("%q prints a key", err)
	}
}

// FuzzParse holds Parse to its promise: accepted documents are served unchanged, are public, and are read in full by a JOSE
// library.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goodConfiguration), []byte(goodSet))
	f.Add([]byte(goodConfiguration), []byte(`{"keys":[`+goodEC+`]}`))
	f.Add([]byte(`{"issuer":"https://identity.example.com/garden/issuer"}`), []byte(`{"keys":[]}`))
	f.Add([]byte(`{"a":{"a":[1e9,"\ud800"]}}`), []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`))
	f.Fuzz(func(t *testing.T, configuration, jwks []byte) {
		checkParsed(t, configuration, jwks)
		// The other document is good in these, so that each alone gets all the way.
		checkParsed(t, []byte(goodConfiguration), jwks)
		checkParsed(t, configuration, []byte(goodSet))
	})
}

func checkParsed(t *testing.T, configuration, jwks []byte) {
	documents, err := Parse(testIssuer, configuration, jwks)
	if err != nil {
		if _, ok := err.(*Refusal); !ok || !documents.IsZero() {
			t.Fatalf("error %v with documents %v", err, documents)
		}
		return
	}
	if string(documents.Configuration()) != string(configuration) || string(documents.JWKS()) != string(jwks) {
		t.Fatal("the bytes are not those that were parsed")
	}
	var set jose.JSONWebKeySet
	testkit.Must(t, json.Unmarshal(jwks, &set), "a JOSE library refuses the key set")
	if len(set.Keys) != len(documents.KeyIDs()) || len(set.Keys) == 0 {
		t.Fatalf("a JOSE library reads %d keys of %d", len(set.Keys), len(documents.KeyIDs()))
	}
	for _, key := range set.Keys {
		if !key.IsPublic() || !key.Valid() || key.KeyID == "" {
			t.Fatalf("key %q is not a valid public key", key.KeyID)
		}
	}
}
