package relyingparty

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/credence-id/credence/test/testkit"
)

func (i *testIssuer) options() Options {
	return Options{Client: i.server.Client(), Issuer: i.url, Audience: "one", Clock: func() time.Time { return testNow }}
}

// goOIDC returns the judgement of coreos/go-oidc, with the same wishes.
func (i *testIssuer) goOIDC(t *testing.T, token string) error {
	ctx := oidc.ClientContext(t.Context(), i.server.Client())
	provider, err := oidc.NewProvider(ctx, string(i.url))
	if err != nil {
		return err
	}
	_, err = provider.Verifier(&oidc.Config{ClientID: "one", Now: func() time.Time { return testNow }}).Verify(ctx, token)
	return err
}

type verifyCase struct {
	token func(t *testing.T, i *testIssuer) string
	spoil func(i *testIssuer)
	want  []Reason
}

func signedBy(claims map[string]any) func(t *testing.T, i *testIssuer) string {
	return func(t *testing.T, i *testIssuer) string { return sign(t, ecKey(), "ec", i.claims(claims)) }
}

func verifyCases() map[string]verifyCase {
	return map[string]verifyCase{
		"good ES256":           {token: signedBy(nil)},
		"good RS256":           {token: func(t *testing.T, i *testIssuer) string { return sign(t, rsaKey(), "rsa", i.claims(nil)) }},
		"no kid":               {token: func(t *testing.T, i *testIssuer) string { return sign(t, ecKey(), "", i.claims(nil)) }},
		"audience is a string": {token: signedBy(map[string]any{"aud": "one"})},
		"expires in a second":  {token: signedBy(map[string]any{"exp": testNow.Unix() + 1})},
		"valid from now":       {token: signedBy(map[string]any{"nbf": testNow.Unix()})},
		"no nbf":               {token: signedBy(map[string]any{"nbf": nil})},
		"fraction of a second": {token: signedBy(map[string]any{"exp": float64(testNow.Unix()) + 2.5})},

		"other issuer": {token: signedBy(map[string]any{"iss": "https://other.example"}), want: []Reason{WrongIssuer}},
		"issuer with slash": {token: func(t *testing.T, i *testIssuer) string {
			return sign(t, ecKey(), "ec", i.claims(map[string]any{"iss": string(i.url) + "/"}))
		}, want: []Reason{WrongIssuer}},
		"no issuer":       {token: signedBy(map[string]any{"iss": nil}), want: []Reason{WrongIssuer}},
		"other audience":  {token: signedBy(map[string]any{"aud": "three"}), want: []Reason{WrongAudience}},
		"no audience":     {token: signedBy(map[string]any{"aud": nil}), want: []Reason{WrongAudience}},
		"expired":         {token: signedBy(map[string]any{"exp": testNow.Unix() - 1}), want: []Reason{Expired}},
		"expired in 1970": {token: signedBy(map[string]any{"exp": 0}), want: []Reason{Expired}},
		"no expiry":       {token: signedBy(map[string]any{"exp": nil}), want: []Reason{MissingExpiry}},
		"not yet valid":   {token: signedBy(map[string]any{"nbf": testNow.Unix() + 301}), want: []Reason{NotYetValid}},
		"everything at once": {
			token: func(t *testing.T, i *testIssuer) string {
				return sign(t, foreignKey(), "none", i.claims(map[string]any{"iss": "https://other.example", "aud": "three", "exp": 1, "nbf": testNow.Unix() + 600}))
			},
			want: []Reason{WrongIssuer, WrongAudience, Expired, NotYetValid, UnknownKey},
		},
		"unknown kid": {
			token: func(t *testing.T, i *testIssuer) string { return sign(t, ecKey(), "old", i.claims(nil)) },
			want:  []Reason{UnknownKey},
		},
		"foreign key under a known kid": {
			token: func(t *testing.T, i *testIssuer) string { return sign(t, foreignKey(), "ec", i.claims(nil)) },
			want:  []Reason{BadSignature},
		},
		"foreign key without kid": {
			token: func(t *testing.T, i *testIssuer) string { return sign(t, foreignKey(), "", i.claims(nil)) },
			want:  []Reason{BadSignature},
		},
		"claims changed": {
			token: func(t *testing.T, i *testIssuer) string {
				parts := strings.Split(sign(t, ecKey(), "ec", i.claims(nil)), ".")
				other := strings.Split(sign(t, ecKey(), "ec", i.claims(map[string]any{"sub": "admin"})), ".")
				return parts[0] + "." + other[1] + "." + parts[2]
			},
			want: []Reason{BadSignature},
		},
		"signature cut off": {
			token: func(t *testing.T, i *testIssuer) string {
				token := sign(t, ecKey(), "ec", i.claims(nil))
				return token[:strings.LastIndex(token, ".")+1]
			},
			want: []Reason{BadSignature},
		},
		"key of the other type": {
			token: func(t *testing.T, i *testIssuer) string { return sign(t, ecKey(), "rsa", i.claims(nil)) },
			want:  []Reason{BadAlgorithm},
		},
		"algorithm none": {
			token: func(t *testing.T, i *testIssuer) string {
				token := withHeader(sign(t, ecKey(), "ec", i.claims(nil)), `{"alg":"none","kid":"ec"}`)
				return token[:strings.LastIndex(token, ".")+1]
			},
			want: []Reason{BadAlgorithm},
		},
		"HMAC with the public key": {
			token: func(t *testing.T, i *testIssuer) string {
				token := withHeader(sign(t, ecKey(), "rsa", i.claims(nil)), `{"alg":"HS256","kid":"rsa"}`)
				input := token[:strings.LastIndex(token, ".")]
				public := testkit.Need(x509.MarshalPKIXPublicKey(rsaKey().Public()))(t)
				mac := hmac.New(sha256.New, public)
				mac.Write([]byte(input))
				return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
			},
			want: []Reason{BadAlgorithm},
		},
		"algorithm not published": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) { i.configuration["id_token_signing_alg_values_supported"] = []string{"RS256"} },
			want:  []Reason{BadAlgorithm},
		},
		"no algorithms published": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) { delete(i.configuration, "id_token_signing_alg_values_supported") },
			want:  []Reason{BadAlgorithm},
		},
		"extension demanded": {
			token: func(t *testing.T, i *testIssuer) string {
				return withHeader(sign(t, ecKey(), "ec", i.claims(nil)), `{"alg":"ES256","kid":"ec","crit":["x"],"x":1}`)
			},
			want: []Reason{Malformed, BadSignature},
		},
		"key in the header": {
			token: func(t *testing.T, i *testIssuer) string {
				return withHeader(sign(t, foreignKey(), "ec", i.claims(nil)), `{"alg":"ES256","kid":"other","jku":"https://evil.example/jwks"}`)
			},
			want: []Reason{UnknownKey},
		},
		"malformed": {token: func(*testing.T, *testIssuer) string { return "not a token" }, want: []Reason{Malformed}},
		"document of another issuer": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) { i.configuration["issuer"] = string(i.url) + "/" },
			want:  []Reason{WrongIssuer},
		},
		"no key published": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) { i.keySet.Keys = []jose.JSONWebKey{} },
			want:  []Reason{UnknownKey},
		},
		"an unknown kind of key beside": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) {
				i.handle["/jwks"] = func(w http.ResponseWriter, _ *http.Request) {
					key, err := i.keySet.Keys[1].MarshalJSON()
					if err != nil {
						panic(err)
					}
					w.Write([]byte(`{"keys":[{"kty":"PQ","kid":"new"},` + string(key) + `]}`))
				}
			},
		},
		"redirect within https": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) {
				i.handle["/jwks"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/moved", http.StatusFound) }
				i.handle["/moved"] = func(w http.ResponseWriter, r *http.Request) {
					delete(i.handle, "/jwks")
					r.URL.Path = "/jwks"
					i.serve(w, r)
				}
			},
		},
	}
}

func withHeader(token, header string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + token[strings.Index(token, "."):]
}

// TestVerifyAgreesWithGoOIDC holds every judgement against that of the library which Kubernetes, Vault and others use.
func TestVerifyAgreesWithGoOIDC(t *testing.T) {
	for name, test := range verifyCases() {
		t.Run(name, func(t *testing.T) {
			issuer := newIssuer(t)
			if test.spoil != nil {
				test.spoil(issuer)
			}
			token := test.token(t, issuer)
			result := testkit.Need(Verify(t.Context(), token, issuer.options()))(t)
			if diff := cmp.Diff(test.want, reasons(result)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, result.Findings)
			}
			if result.Valid() != (len(test.want) == 0) {
				t.Errorf("valid is %v with findings %v", result.Valid(), result.Findings)
			}
			if test.spoil != nil {
				issuer.handle = map[string]http.HandlerFunc{}
				test.spoil(issuer)
			}
			if theirs := issuer.goOIDC(t, token); (theirs == nil) != result.Valid() {
				t.Errorf("valid is %v, by go-oidc %v", result.Valid(), theirs)
			}
			checkNoLeak(t, token, result)
		})
	}
}

// checkNoLeak holds every finding to the rule that it never contains the signature of the token.
func checkNoLeak(t *testing.T, token string, result Result) {
	t.Helper()
	parts := strings.Split(token, ".")
	signature := parts[len(parts)-1]
	for _, finding := range result.Findings {
		if len(signature) > 20 && strings.Contains(finding.Detail, signature) {
			t.Errorf("finding %s contains the signature of the token", finding.Reason)
		}
	}
}

// TestVerifyIsStricterThanGoOIDC lists, on purpose and completely, what go-oidc accepts and Verify does not.
func TestVerifyIsStricterThanGoOIDC(t *testing.T) {
	for name, test := range map[string]verifyCase{
		"clock skew":      {token: signedBy(map[string]any{"nbf": testNow.Unix() + 299}), want: []Reason{NotYetValid}},
		"expires now":     {token: signedBy(map[string]any{"exp": testNow.Unix()}), want: []Reason{Expired}},
		"expiry a string": {token: signedBy(map[string]any{"exp": "1914537600"}), want: []Reason{Malformed}},
		"duplicate claim": {
			token: func(t *testing.T, i *testIssuer) string {
				return signBytes(t, ecKey(), "ec", []byte(`{"iss":"`+string(i.url)+`","aud":"x","aud":"one","exp":1914537600}`))
			},
			want: []Reason{Malformed},
		},
		"claim in other case": {
			token: func(t *testing.T, i *testIssuer) string {
				return signBytes(t, ecKey(), "ec", []byte(`{"iss":"`+string(i.url)+`","Aud":"one","exp":1914537600}`))
			},
			want: []Reason{WrongAudience},
		},
		"key for encryption": {
			token: signedBy(nil),
			spoil: func(i *testIssuer) { i.keySet.Keys[1].Use = "enc" },
			want:  []Reason{UnknownKey},
		},
		"key for another algorithm": {
			token: func(t *testing.T, i *testIssuer) string { return sign(t, rsaKey(), "rsa", i.claims(nil)) },
			spoil: func(i *testIssuer) { i.keySet.Keys[0].Algorithm = "PS256" },
			want:  []Reason{UnknownKey},
		},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := newIssuer(t)
			if test.spoil != nil {
				test.spoil(issuer)
			}
			token := test.token(t, issuer)
			result := testkit.Need(Verify(t.Context(), token, issuer.options()))(t)
			if diff := cmp.Diff(test.want, reasons(result)); diff != "" || result.Valid() {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if theirs := issuer.goOIDC(t, token); theirs != nil {
				t.Errorf("go-oidc does not accept it either: %v", theirs)
			}
		})
	}
}

func TestFindingsSayWhatWasWantedAndWhatTheTokenHas(t *testing.T) {
	issuer := newIssuer(t)
	token := sign(t, ecKey(), "old", issuer.claims(map[string]any{
		"iss": "https://other.example", "aud": []string{"three", "four"}, "exp": testNow.Unix() - 60, "nbf": testNow.Unix() + 60,
	}))
	result := testkit.Need(Verify(t.Context(), token, issuer.options()))(t)
	url, now := string(issuer.url), "2026-07-01T12:00:00Z"
	want := []Finding{
		{WrongIssuer, `the token is of issuer "https://other.example", wanted is "` + url + `" (issuers are compared byte by byte)`, []string{"https://other.example"}, []string{url}},
		{WrongAudience, `the token is for audiences "three", "four", wanted is "one"`, []string{"three", "four"}, []string{"one"}},
		{Expired, "the token expired at 2026-07-01T11:59:00Z, it is now " + now, []string{"2026-07-01T11:59:00Z"}, []string{now}},
		{NotYetValid, "the token is valid from 2026-07-01T12:01:00Z on, it is now " + now, []string{"2026-07-01T12:01:00Z"}, []string{now}},
		{UnknownKey, `the token is signed with key "old", the issuer publishes keys "rsa", "ec"`, []string{"old"}, []string{"rsa", "ec"}},
	}
	if diff := cmp.Diff(want, result.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestVerifyTakesTheIssuerFromTheTokenAndSaysSo(t *testing.T) {
	issuer := newIssuer(t)
	options := issuer.options()
	options.Issuer = ""
	result := testkit.Need(Verify(t.Context(), sign(t, ecKey(), "ec", issuer.claims(nil)), options))(t)
	if !result.Valid() || !result.IssuerFromToken || result.Issuer != issuer.url {
		t.Errorf("valid %v, issuer %q from the token %v", result.Valid(), result.Issuer, result.IssuerFromToken)
	}
	for _, bad := range []any{nil, "http://plain.example", "https://a.example/?q"} {
		result := testkit.Need(Verify(t.Context(), sign(t, ecKey(), "ec", issuer.claims(map[string]any{"iss": bad})), options))(t)
		if diff := cmp.Diff([]Reason{WrongIssuer}, reasons(result)); diff != "" || result.Valid() {
			t.Errorf("issuer %v: reasons (-want +got):\n%s", bad, diff)
		}
	}
}

func TestVerifyWithLeewayAndAnyAudience(t *testing.T) {
	issuer := newIssuer(t)
	options := issuer.options()
	options.Audience, options.Leeway = "", time.Minute
	for name, test := range map[string]struct {
		claims map[string]any
		want   []Reason
	}{
		"both within":      {claims: map[string]any{"exp": testNow.Unix() - 59, "nbf": testNow.Unix() + 60}},
		"expiry beyond":    {claims: map[string]any{"exp": testNow.Unix() - 60}, want: []Reason{Expired}},
		"start beyond":     {claims: map[string]any{"nbf": testNow.Unix() + 61}, want: []Reason{NotYetValid}},
		"other audience":   {claims: map[string]any{"aud": "three"}},
		"without audience": {claims: map[string]any{"aud": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			result := testkit.Need(Verify(t.Context(), sign(t, ecKey(), "ec", issuer.claims(test.claims)), options))(t)
			if diff := cmp.Diff(test.want, reasons(result), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutageIsNoRefusal(t *testing.T) {
	const configurationPath = "/.well-known/openid-configuration"
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	for name, test := range map[string]struct {
		spoil func(i *testIssuer)
		want  string
	}{
		"server gone":       {func(i *testIssuer) { i.server.Close() }, "read the discovery document at https://"},
		"document missing":  {func(i *testIssuer) { i.handle[configurationPath] = http.NotFound }, "the server answered 404 Not Found"},
		"document not JSON": {func(i *testIssuer) { i.handle[configurationPath] = answer(200, "<html>") }, "it is not JSON"},
		"document too long": {func(i *testIssuer) {
			i.handle[configurationPath] = answer(200, strings.Repeat(" ", maxConfiguration+1))
		}, "it is longer than 65536 bytes"},
		"key set by plain http":  {func(i *testIssuer) { i.configuration["jwks_uri"] = "http://127.0.0.1/jwks" }, "not an https URL"},
		"key set failing":        {func(i *testIssuer) { i.handle["/jwks"] = answer(503, "") }, "read the key set at"},
		"key set not JSON":       {func(i *testIssuer) { i.handle["/jwks"] = answer(200, `{"keys":1}`) }, `"keys" is missing or not an array`},
		"key set too long":       {func(i *testIssuer) { i.handle["/jwks"] = answer(200, strings.Repeat(" ", maxKeySet+1)) }, "it is longer than 262144 bytes"},
		"redirect to plain http": {func(i *testIssuer) { i.handle["/jwks"] = redirectTo("http://127.0.0.1:1/jwks") }, "which is not https"},
		"redirect for ever":      {func(i *testIssuer) { i.handle["/jwks"] = redirectTo("/jwks") }, "it redirects more than 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := newIssuer(t)
			test.spoil(issuer)
			result, err := Verify(t.Context(), sign(t, ecKey(), "ec", issuer.claims(nil)), issuer.options())
			outage, ok := errors.AsType[*OutageError](err)
			if !ok {
				t.Fatalf("error %v, want an OutageError", err)
			}
			if !strings.Contains(outage.Error(), test.want) {
				t.Errorf("error %q, want one with %q", outage, test.want)
			}
			if result.Valid() || len(result.Findings) > 0 {
				t.Errorf("valid %v with findings %v", result.Valid(), result.Findings)
			}
		})
	}
}

func TestOutageKeepsWhatIsWrongAnyway(t *testing.T) {
	issuer := newIssuer(t)
	token := withHeader(sign(t, ecKey(), "ec", issuer.claims(map[string]any{"exp": 1})), `{"alg":"none"}`)
	issuer.server.Close()
	result, err := Verify(t.Context(), token, issuer.options())
	if err == nil {
		t.Error("no outage reported")
	}
	if diff := cmp.Diff([]Reason{Expired, BadAlgorithm}, reasons(result)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestVerifyTrustsOnlyKnownAuthorities(t *testing.T) {
	issuer := newIssuer(t)
	options := issuer.options()
	options.Client = &http.Client{Transport: &http.Transport{}}
	_, err := Verify(t.Context(), sign(t, ecKey(), "ec", issuer.claims(nil)), options)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("error %v, want an unknown authority", err)
	}
}

func TestVerifyAsksTheWantedIssuerNotTheTokens(t *testing.T) {
	wanted, other := newIssuer(t), newIssuer(t)
	asked := make(chan string, 8)
	other.handle["/.well-known/openid-configuration"] = func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }
	options := wanted.options()
	testkit.Must(t, testkit.Err(Verify(t.Context(), sign(t, ecKey(), "ec", other.claims(nil)), options)))
	if len(asked) > 0 {
		t.Error("documents of the token's issuer were fetched, although another one was wanted")
	}
}

func redirectTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, http.StatusFound) }
}

func reasons(result Result) []Reason {
	var found []Reason
	for _, finding := range result.Findings {
		found = append(found, finding.Reason)
	}
	return found
}
