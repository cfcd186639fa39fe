package registry_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/test/testkit"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func now() time.Time { return noon }

// secret is a token of an identity for the registries, as text.
var secret = signed(`{"sub":"s","aud":["registry"]}`)

// signed has the shape of a token, with the claims.
func signed(claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + strings.Repeat("s", 86)
}

func token() registry.Token { return tokenOf(secret) }

func tokenOf(text string) registry.Token {
	return registry.Token{Value: identity.NewToken(text), Expires: noon.Add(time.Hour)}
}

func parse(t *testing.T, text string) registry.Config {
	t.Helper()
	config := testkit.Need(registry.Parse([]byte(text)))(t)
	return config
}

func TestRegistryOfAnImage(t *testing.T) {
	config := parse(t, `
registries:
- {images: registry.example.com, audiences: [registry], exchange: token-server}
- {images: registry.example.com/team, audiences: [registry], exchange: token-server}
- {images: "localhost:5000", audiences: [registry], exchange: token-server}
- {images: "mirror:80/a_b/c.d", audiences: [registry], exchange: token-server}
`)
	for image, want := range map[string]string{
		"registry.example.com/app":        "registry.example.com",
		"registry.example.com/team/app":   "registry.example.com/team",
		"registry.example.com/team":       "registry.example.com/team",
		"registry.example.com/teams/app":  "registry.example.com",
		"localhost:5000/app":              "localhost:5000",
		"localhost:5001/app":              "",
		"registry.example.com.evil/app":   "",
		"registry.example.com:443/app":    "",
		"other.registry.example.com/app":  "",
		"docker.io/registry.example.com/": "",
		"mirror:80/a_b/c.d/e":             "mirror:80/a_b/c.d",
		"":                                "",
	} {
		if got, known := config.Of(image); got.Images != want || known != (want != "") {
			t.Errorf("image %q is of %q, %v, want %q", image, got.Images, known, want)
		}
	}
	if config.CacheDuration != registry.DefaultCacheDuration {
		t.Errorf("cacheDuration is %s", config.CacheDuration)
	}
}

func TestRegistriesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                              "registries is empty",
		`registries: 5`:                   "cannot unmarshal",
		`other: 5`:                        `unknown field "other"`,
		`{registries: [], registries: 5}`: `key "registries" already set`,
		`Registries: [{images: a.example, audiences: [registry], exchange: token-server}]`:                                                                                                                                        `Registries`,
		`registries: [{images: "*.azurecr.io", audiences: [registry], exchange: token-server}]`:                                                                                                                                   `registries[0].images: "*.azurecr.io" is not a host`,
		`registries: [{images: "https://a.example", audiences: [registry], exchange: token-server}]`:                                                                                                                              "without scheme",
		`registries: [{images: a.example/App, audiences: [registry], exchange: token-server}]`:                                                                                                                                    "in lower case",
		`registries: [{images: team, audiences: [registry], exchange: token-server}]`:                                                                                                                                             "is not a host",
		`registries: [{images: a.example/, audiences: [registry], exchange: token-server}]`:                                                                                                                                       "is not a host",
		`registries: [{images: "a.example/app:v1", audiences: [registry], exchange: token-server}]`:                                                                                                                               "is not a host",
		`registries: [{images: a.example, audiences: [registry], exchange: token-server}, {images: a.example, audiences: [registry], exchange: token-server}]`:                                                                    "registries[1].images: a.example is there twice",
		`registries: [{images: a.example, exchange: token-server}]`:                                                                                                                                                               "registries[0].audiences is empty",
		`registries: [{images: a.example, audiences: [], exchange: token-server}]`:                                                                                                                                                "registries[0].audiences is empty",
		`registries: [{images: a.example, audiences: [registry, ""], exchange: token-server}]`:                                                                                                                                    `registries[0].audiences: "" is not an audience`,
		`registries: [{images: a.example, audiences: registry, exchange: token-server}]`:                                                                                                                                          "cannot unmarshal",
		`registries: [{images: a.example, audiences: [registry]}]`:                                                                                                                                                                `registries[0].exchange: "" is not one of `,
		`registries: [{images: a.example, audiences: [registry], exchange: token-server, settings: {user: x}}]`:                                                                                                                   `registries[0].settings: json: unknown field "user"`,
		`registries: [{images: a.example, audiences: [registry], exchange: token-server, settings: {username: "a:b"}}]`:                                                                                                           "username has a colon",
		`registries: [{images: a.example, audiences: [registry], exchange: token-exchange}]`:                                                                                                                                      "endpoint must be a URL",
		`registries: [{images: a.example, audiences: [registry], exchange: token-exchange, settings: {endpoint: "http://sts.example/token"}}]`:                                                                                    `endpoint must be https, not "http"`,
		`registries: [{images: a.example, audiences: [registry], exchange: token-exchange, settings: {endpoint: "https://u:p@sts.example/token"}}]`:                                                                               "without a user",
		`registries: [{images: a.example, audiences: [registry], exchange: token-exchange, settings: {endpoint: "https://sts.example/token", username: "a\nb"}}]`:                                                                 "more than one line",
		`registries: [{images: a.example, audiences: [registry], exchange: token-exchange, settings: {Endpoint: "https://sts.example/token"}}]`:                                                                                   "Endpoint",
		`registries: [{images: a.example, audiences: [registry], exchange: google-artifact-registry}]`:                                                                                                                            "provider is not projects/NUMBER",
		`registries: [{images: a.example, audiences: [registry], exchange: google-artifact-registry, settings: {provider: "projects/1/x"}}]`:                                                                                      "provider is not projects/NUMBER",
		`registries: [{images: a.example, audiences: [registry], exchange: google-artifact-registry, settings: {provider: projects/1/locations/global/workloadIdentityPools/p/providers/q, serviceAccount: "a@b.example/../x"}}]`: "serviceAccount is not the address",
		`registries: [{images: a.example, audiences: [registry], exchange: amazon-ecr}]`:                                                                                                                                          "images has the host a.example: amazon-ecr is for hosts such as 112233445566.dkr.ecr.eu-central-1.amazonaws.com",
		`registries: [{images: "112233445566.dkr.ecr.eu-central-1.amazonaws.com.evil.example", audiences: [registry], exchange: amazon-ecr}]`:                                                                                     "images has the host 112233445566.dkr.ecr.eu-central-1.amazonaws.com.evil.example",
		`registries: [{images: 112233445566.dkr.ecr.eu-central-1.amazonaws.com, audiences: [registry], exchange: amazon-ecr, settings: {region: x}}]`:                                                                             `unknown field "region"`,
		`registries: [{images: shop.azurecr.example, audiences: [registry], exchange: azure-container-registry}]`:                                                                                                                 "images has the host shop.azurecr.example: azure-container-registry is for login servers such as shop.azurecr.io",
		`registries: [{images: "shop.azurecr.io:8443", audiences: [registry], exchange: azure-container-registry}]`:                                                                                                               "images has the host shop.azurecr.io:8443",
		`registries: [{images: a.example, audiences: [registry], exchange: alibaba-container-registry}]`:                                                                                                                          "instanceID is not the ID of an instance",
		`registries: [{images: a.example, audiences: [registry], exchange: alibaba-container-registry, settings: {instanceID: cri-a&b, region: eu-central-1}}]`:                                                                   "instanceID is not the ID of an instance",
		`registries: [{images: a.example, audiences: [registry], exchange: alibaba-container-registry, settings: {instanceID: cri-ab, region: eu-central-1.evil.example/}}]`:                                                      "region is not the ID of the instance's region",
		`{cacheDuration: 2h, registries: [{images: a.example, audiences: [registry], exchange: token-server}]}`:                                                                                                                   "cacheDuration 2h0m0s: give 0s to 1h0m0s",
		`{cacheDuration: -1s, registries: [{images: a.example, audiences: [registry], exchange: token-server}]}`:                                                                                                                  "cacheDuration -1s",
	} {
		if _, err := registry.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The token itself is the password.
func TestTokenServer(t *testing.T) {
	for settings, username := range map[string]string{"{}": "credence", "{username: robot}": "robot"} {
		of, _ := parse(t, `registries: [{images: a.example, audiences: [registry], exchange: token-server, settings: `+settings+`}]`).Of("a.example/app")
		got, err := of.Credentials(t.Context(), token(), now)
		if err != nil || got.Username != username || got.Password.Reveal() != secret || !got.Expires.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: %+v, %v", settings, got, err)
		}
	}
}

// A token is for the registries that its audiences are of, each of them: nothing is sent for another, nor handed out.
func TestTokensOfOtherRegistries(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		_, _ = w.Write([]byte(`{"access_token":"new"}`))
	}))
	defer server.Close()
	config := parse(t, `
registries:
- {images: a.example, audiences: [registry, mirror], exchange: token-server}
- {images: b.example, audiences: [registry, mirror], exchange: token-exchange, settings: {endpoint: "`+server.URL+`"}}
`)
	for claims, want := range map[string]string{
		`{"aud":["registry"]}`:          "",
		`{"aud":"mirror"}`:              "",
		`{"aud":["registry","mirror"]}`: "",
		`{"aud":["other"]}`:             `the identity's token is for audience "other": `,
		`{"aud":"other"}`:               `audience "other"`,
		`{"aud":["registry","other"]}`:  `audience "other"`,
		`{"aud":["Registry"]}`:          `audience "Registry"`,
		`{"aud":["registry/x"]}`:        `audience "registry/x"`,
		`{"aud":["\u001b[31m\n"]}`:      `audience "\x1b[31m\n"`,
		`{"aud":[]}`:                    "has no audience",
		`{"aud":null}`:                  "has no audience",
		`{"aud":""}`:                    `audience ""`,
		`{"aud":[null]}`:                "has no audience",
		`{"aud":5}`:                     "has no audience",
		`{"aud":["registry",5]}`:        "has no audience",
		`{"Aud":["registry"]}`:          "has no audience",
		`{"aud":"x","aud":"registry"}`:  "has no audience",
		`{"sub":"s"}`:                   "has no audience",
		`["registry"]`:                  "has no audience",
		"":                              "has no audience",
	} {
		for _, of := range config.Registries {
			sent = 0
			got, err := of.Credentials(t.Context(), tokenOf(signed(claims)), now)
			if want == "" {
				if err != nil {
					t.Errorf("%s for %s: %v", claims, of.Images, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "get credentials for images of "+of.Images+": ") {
				t.Errorf("%s for %s: %v, want %q", claims, of.Images, err, want)
			}
			if !got.Password.IsZero() || sent > 0 {
				t.Errorf("%s for %s: %d requests, and a password", claims, of.Images, sent)
			}
		}
	}
	for _, text := range []string{"", "a.b", "a.!.c", secret + ".x"} {
		if got, err := config.Registries[0].Credentials(t.Context(), tokenOf(text), now); err == nil || !got.Password.IsZero() {
			t.Errorf("%q is taken: %v", text, err)
		}
	}
}

// exchangeAt is a registry with the token exchange of a server.
func exchangeAt(t *testing.T, settings string) registry.Registry {
	t.Helper()
	of, _ := parse(t, `registries: [{images: a.example, audiences: [registry], exchange: token-exchange, settings: `+settings+`}]`).Of("a.example/app")
	return of
}

func TestTokenExchange(t *testing.T) {
	var got url.Values
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		got = r.PostForm
		_, _ = w.Write([]byte(`{"access_token":"new","issued_token_type":"x","token_type":"Bearer","expires_in":600}`))
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(ca, (&testkit.Certificate{Certificate: server.Certificate()}).PEM(), 0o600))
	of := exchangeAt(t, `{endpoint: "`+server.URL+`/token", caFile: "`+ca+`", audience: registry, resource: "https://a.example", scope: pull, requestedTokenType: urn:t, username: robot}`)
	credentials := testkit.Need(of.Credentials(t.Context(), token(), now))(t)
	if credentials.Username != "robot" || credentials.Password.Reveal() != "new" || !credentials.Expires.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("%+v", credentials)
	}
	want := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {secret}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
		"audience": {"registry"}, "resource": {"https://a.example"}, "scope": {"pull"}, "requested_token_type": {"urn:t"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Without the authority nothing is sent.
	got = nil
	if _, err := exchangeAt(t, `{endpoint: "`+server.URL+`/token"}`).Credentials(t.Context(), token(), now); err == nil || !strings.Contains(err.Error(), "name the file with the certificate of the server") || got != nil {
		t.Errorf("a server that is not trusted: %v, %v", err, got)
	}
}

// Whatever a server answers: the error has its address and what to do, and no part of the token.
func TestAnswersThatAreRefused(t *testing.T) {
	followed := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed++ }))
	defer other.Close()
	elsewhere := http.Header{"Location": {other.URL}}
	for name, c := range map[string]struct {
		status int
		body   string
		header http.Header
		want   string
	}{
		"refusal":         {400, `{"error":"invalid_grant","error_description":"the token ` + secret + ` is not good"}`, nil, "answers 400: invalid_grant: the token [redacted] is not good"},
		"code alone":      {403, `{"error":"access_denied"}`, nil, "answers 403: access_denied"},
		"HTML":            {500, "<html>\nBad \x1b[31mGateway " + secret[:80] + "</html>", nil, `answers 500: <html>\nBad \u001b[31mGateway [redacted]`},
		"nothing":         {502, "", nil, "answers 502"},
		"HTML of a proxy": {200, "<html>please log in</html>", nil, "correct endpoint in the configuration"},
		"no token":        {200, `{"token_type":"Bearer"}`, nil, "has no access_token"},
		"redirect":        {302, "", elsewhere, "answers 302, and tokens follow no redirect"},
		// These two keep the method and the body.
		"short redirect": {307, "", elsewhere, "answers 307, and tokens follow no redirect"},
		"long redirect":  {308, "", elsewhere, "answers 308, and tokens follow no redirect"},
		"too large":      {200, `{"access_token":"` + strings.Repeat("a", 1<<20) + `"}`, nil, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			followed = 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for key, values := range c.header {
					w.Header()[key] = values
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			got, err := exchangeAt(t, `{endpoint: "`+server.URL+`"}`).Credentials(t.Context(), token(), now)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), server.URL) || !strings.HasPrefix(err.Error(), "get credentials for images of a.example: ") {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), secret[:40]) {
				t.Errorf("the error has a part of the token: %v", err)
			}
			if !got.Password.IsZero() {
				t.Error("there is a password")
			}
			if followed > 0 {
				t.Errorf("%d requests to the host of the redirect", followed)
			}
		})
	}
	if _, err := exchangeAt(t, `{endpoint: "http://127.0.0.1:1/"}`).Credentials(t.Context(), token(), now); err == nil || !strings.Contains(err.Error(), "request to http://127.0.0.1:1/: ") {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := exchangeAt(t, `{endpoint: "http://127.0.0.1:1/"}`).Credentials(ctx, token(), now); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was ended: %v", err)
	}
}

// Without expires_in a password is taken to end with the token.
func TestExpiryOfAnExchange(t *testing.T) {
	for answer, want := range map[string]time.Time{
		`{"access_token":"new"}`:                                  noon.Add(time.Hour),
		`{"access_token":"new","expires_in":-5}`:                  noon.Add(time.Hour),
		`{"access_token":"new","expires_in":9223372036854775807}`: noon.Add(100 * 365 * 24 * time.Hour),
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		got, err := exchangeAt(t, `{endpoint: "`+server.URL+`"}`).Credentials(t.Context(), token(), now)
		server.Close()
		if err != nil || !got.Expires.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", answer, got.Expires, err, want)
		}
	}
}

// A cloud's registry needs an identity of that cloud: for another one nothing is sent.
func TestIdentitiesOfOtherClouds(t *testing.T) {
	config := func(system, fields string) *v1alpha1.TargetSystem {
		text := fmt.Sprintf(`{"apiVersion":"%s.authentication.gardener.cloud/v1alpha1","kind":"Config"%s}`, system, fields)
		return &v1alpha1.TargetSystem{Type: system, ProviderConfig: &runtime.RawExtension{Raw: []byte(text)}}
	}
	for images, exchange := range map[string]string{
		"112233445566.dkr.ecr.eu-central-1.amazonaws.com": "amazon-ecr",
		"shop.azurecr.io":  "azure-container-registry",
		"registry.example": "alibaba-container-registry, settings: {instanceID: cri-ab, region: eu-central-1}",
	} {
		of, _ := parse(t, fmt.Sprintf(`registries: [{images: %s, audiences: [registry], exchange: %s}]`, images, exchange)).Of(images + "/app")
		for name, c := range map[string]struct {
			target *v1alpha1.TargetSystem
			want   string
		}{
			"none":    {nil, "the identity is not of target system "},
			"generic": {&v1alpha1.TargetSystem{Type: "generic"}, "the identity is not of target system "},
			"vault":   {config("vault", ""), "the identity is not of target system "},
			"a store": {config("aws", `,"iamRoleARN":"arn:minio:iam:::role/app","endpoint":"https://minio.example.com"`), "the identity is for the store at https://minio.example.com: use one for AWS"},
			"empty":   {&v1alpha1.TargetSystem{Type: "aws"}, "a user who may update the identity corrects it: spec.targetSystem.providerConfig: Required"},
		} {
			if (name == "a store" || name == "empty") && exchange != "amazon-ecr" {
				continue
			}
			token := token()
			token.Target = c.target
			got, err := of.Credentials(t.Context(), token, now)
			if err == nil || !got.Password.IsZero() || !strings.Contains(err.Error(), "get credentials for images of "+images+": "+c.want) {
				t.Errorf("%s for %s: %v, want %q", name, images, err, c.want)
			}
		}
	}
}

// Any file is a configuration or an error, and one of a configuration names no other host than the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`registries: [{images: a.example, audiences: [registry], exchange: token-server}]`))
	f.Add([]byte(`registries: [{images: shop.azurecr.io/a, audiences: [registry], exchange: azure-container-registry}]`))
	f.Add([]byte(`{"cacheDuration":"0s","registries":[{"images":"localhost:5000/a","audiences":["registry"],"exchange":"token-exchange","settings":{"endpoint":"https://sts.example"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := registry.Parse(data)
		if err != nil {
			return
		}
		for _, r := range config.Registries {
			host, _, _ := strings.Cut(r.Images, "/")
			if u, err := url.Parse("https://" + r.Images); err != nil || u.Host != host || strings.ContainsAny(r.Images, "*?@") {
				t.Errorf("images %q: %v", r.Images, err)
			}
			if got, known := config.Of(r.Images + "/app"); !known || !strings.HasPrefix(got.Images, r.Images) {
				t.Errorf("an image of %s is of %q", r.Images, got.Images)
			}
		}
		testkit.Expect(t, testkit.Err(json.Marshal(config)))
	})
}
