package discovery

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const (
	configurationPath = "/garden/issuer/.well-known/openid-configuration"
	jwksPath          = "/garden/issuer/jwks"
)

func loadedHandler(t testing.TB) (*Handler, Documents) {
	t.Helper()
	handler, documents := NewHandler(Settings{Issuer: testIssuer}), exampleDocuments(t)
	testkit.Must(t, handler.Publish(documents))
	return handler, documents
}

func ask(handler http.Handler, method, target string, header ...string) *http.Response {
	request := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response.Result()
}

func body(t testing.TB, response *http.Response) string {
	t.Helper()
	data := testkit.Need(io.ReadAll(response.Body))(t)
	return string(data)
}

func TestHandlerServesDocuments(t *testing.T) {
	handler, documents := loadedHandler(t)
	for _, test := range []struct {
		path, contentType, etag string
		body                    []byte
	}{
		{configurationPath, "application/json", etag(documents.Configuration()), documents.Configuration()},
		{jwksPath, "application/jwk-set+json", documents.JWKSETag(), documents.JWKS()},
	} {
		want := http.Header{
			"Access-Control-Allow-Origin": {"*"},
			"Cache-Control":               {"public, max-age=3600"},
			"Content-Length":              {strconv.Itoa(len(test.body))},
			"Content-Type":                {test.contentType},
			"Etag":                        {test.etag},
			"Strict-Transport-Security":   {"max-age=31536000; includeSubDomains"},
			"X-Content-Type-Options":      {"nosniff"},
		}
		for method, wantBody := range map[string]string{http.MethodGet: string(test.body), http.MethodHead: ""} {
			response := ask(handler, method, test.path, "Host", "evil.example.com", "X-Forwarded-Host", "evil.example.com", "X-Forwarded-Proto", "http")
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s %s: status %d", method, test.path, response.StatusCode)
			}
			if diff := cmp.Diff(want, response.Header); diff != "" {
				t.Errorf("%s %s: header (-want +got):\n%s", method, test.path, diff)
			}
			if got := body(t, response); got != wantBody {
				t.Errorf("%s %s: body %q", method, test.path, got)
			}
		}
	}
}

func TestHandlerServesAnIssuerWithoutPath(t *testing.T) {
	const issuer = identity.Issuer("https://identity.example.com")
	documents := testkit.Need(New(issuer, exampleKeys(t)))(t)
	handler := NewHandler(Settings{Issuer: issuer, MaxAge: 5 * time.Minute})
	testkit.Must(t, handler.Publish(documents))
	for _, path := range []string{"/.well-known/openid-configuration", "/jwks"} {
		response := ask(handler, http.MethodGet, path)
		if response.StatusCode != http.StatusOK || response.Header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("%s: status %d, Cache-Control %q", path, response.StatusCode, response.Header.Get("Cache-Control"))
		}
	}
}

// No relying party keeps documents beyond their next change.
func TestMaxAgeEndsWithTheNextChange(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	documents := exampleDocuments(t)
	handler := NewHandler(Settings{Issuer: testIssuer, MaxAge: 5 * time.Minute, Now: func() time.Time { return now }})
	testkit.Must(t, handler.Publish(documents))
	for _, c := range []struct {
		name string
		next time.Time
		want string
	}{
		{"not known", time.Time{}, "300"},
		{"far away", now.Add(time.Hour), "300"},
		{"just the longest", now.Add(5 * time.Minute), "300"},
		{"sooner", now.Add(5*time.Minute - time.Nanosecond), "299"},
		{"the same second again", now.Add(5*time.Minute - time.Millisecond), "299"},
		{"in less than a second", now.Add(time.Millisecond), "0"},
		{"overdue", now, "60"},
		{"long overdue", time.Unix(0, 0), "60"},
		{"not known any more", time.Time{}, "300"},
	} {
		handler.Expect(c.next)
		for _, path := range []string{configurationPath, jwksPath} {
			if got := ask(handler, http.MethodGet, path).Header.Get("Cache-Control"); got != "public, max-age="+c.want {
				t.Errorf("%s: Cache-Control %q, want max-age=%s", c.name, got, c.want)
			}
		}
	}
	short := NewHandler(Settings{Issuer: testIssuer, MaxAge: 5 * time.Second, Now: func() time.Time { return now }})
	testkit.Must(t, short.Publish(documents))
	short.Expect(now)
	if got := ask(short, http.MethodGet, jwksPath).Header.Get("Cache-Control"); got != "public, max-age=5" {
		t.Errorf("overdue, longest 5s: Cache-Control %q", got)
	}
}

func TestHandlerKnowsNoOtherPath(t *testing.T) {
	handler, _ := loadedHandler(t)
	for _, path := range []string{
		"/", "/jwks", "/.well-known/openid-configuration", "/garden/issuer", "/garden/issuer/",
		jwksPath + "/", configurationPath + "/", "/" + jwksPath, "/garden//issuer/jwks", "/garden/issuer/../issuer/jwks",
		"/garden/issuer/JWKS", "/garden/issuer%2Fjwks", "/garden%2fissuer/jwks", "/garden/issuer/jwks%00", "/garden/issuer/jwks.json",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			response := ask(handler, method, path)
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: status %d, want 404", method, path, response.StatusCode)
			}
			if got, want := body(t, response), `{"code":404,"message":"there is no document at this path"}`+"\n"; got != want {
				t.Errorf("%s %s: body %q, want %q", method, path, got, want)
			}
			wantUncached(t, response)
		}
	}
	for _, path := range []string{jwksPath + "?refresh=1", "/garden/issuer/%6awks", "https://other.example.com" + jwksPath} {
		if response := ask(handler, http.MethodGet, path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, want 200", path, response.StatusCode)
		}
	}
}

func wantUncached(t *testing.T, response *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Etag": "",
		"Strict-Transport-Security": "max-age=31536000; includeSubDomains",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("status %d: %s is %q, want %q", response.StatusCode, name, got, want)
		}
	}
}

func TestHandlerAllowsGETAndHEAD(t *testing.T) {
	handler, _ := loadedHandler(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "X"} {
		for _, path := range []string{configurationPath, jwksPath} {
			response := ask(handler, method, path)
			if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: status %d, Allow %q", method, path, response.StatusCode, response.Header.Get("Allow"))
			}
			wantUncached(t, response)
		}
	}
}

func TestHandlerWithoutDocuments(t *testing.T) {
	handler := NewHandler(Settings{Issuer: testIssuer})
	if handler.Loaded() {
		t.Error("loaded before anything was published")
	}
	for _, path := range []string{configurationPath, jwksPath} {
		response := ask(handler, http.MethodGet, path, "If-None-Match", "*")
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" {
			t.Errorf("%s: status %d, Retry-After %q", path, response.StatusCode, response.Header.Get("Retry-After"))
		}
		wantUncached(t, response)
	}
	if response := ask(handler, http.MethodHead, jwksPath); response.StatusCode != http.StatusServiceUnavailable || body(t, response) != "" {
		t.Error("HEAD is not answered 503 without a body")
	}
}

func TestHandlerComparesETags(t *testing.T) {
	handler, documents := loadedHandler(t)
	tag := documents.JWKSETag()
	for name, test := range map[string]struct {
		fields []string
		want   int
	}{
		"none":                 {nil, 200},
		"the same":             {[]string{tag}, 304},
		"weak":                 {[]string{"W/" + tag}, 304},
		"any":                  {[]string{"*"}, 304},
		"any with spaces":      {[]string{" * "}, 304},
		"another":              {[]string{`"x"`}, 200},
		"of the other one":     {[]string{etag(documents.Configuration())}, 200},
		"last of a list":       {[]string{`"x", W/"y" ,` + tag}, 304},
		"empty elements":       {[]string{`, ,"x",,` + tag}, 304},
		"in a second field":    {[]string{`"x"`, tag}, 304},
		"after a comma within": {[]string{`"a,b", ` + tag}, 304},
		"within another":       {[]string{`"x` + strings.Trim(tag, `"`) + `"`}, 200},
		"without quotes":       {[]string{strings.Trim(tag, `"`)}, 200},
		"open end":             {[]string{strings.TrimSuffix(tag, `"`)}, 200},
		"after an invalid tag": {[]string{`x, ` + tag}, 200},
		"small w":              {[]string{"w/" + tag}, 200},
		"star in a list":       {[]string{`"x", *`}, 200},
		"empty":                {[]string{""}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				var header []string
				for _, field := range test.fields {
					header = append(header, "If-None-Match", field)
				}
				response := ask(handler, method, jwksPath, header...)
				if response.StatusCode != test.want {
					t.Errorf("%s: status %d, want %d", method, response.StatusCode, test.want)
				}
				if response.StatusCode != http.StatusNotModified {
					continue
				}
				want := http.Header{
					"Access-Control-Allow-Origin": {"*"},
					"Cache-Control":               {"public, max-age=3600"},
					"Etag":                        {tag},
					"Strict-Transport-Security":   {"max-age=31536000; includeSubDomains"},
					"X-Content-Type-Options":      {"nosniff"},
				}
				if diff := cmp.Diff(want, response.Header); diff != "" {
					t.Errorf("%s: header (-want +got):\n%s", method, diff)
				}
				if got := body(t, response); got != "" {
					t.Errorf("%s: 304 with body %q", method, got)
				}
			}
		})
	}
}

func TestHandlerKeepsTheLastGoodDocuments(t *testing.T) {
	handler, documents := loadedHandler(t)
	if _, err := handler.Load([]byte(goodConfiguration), []byte(`{"keys":[]}`)); err == nil {
		t.Error("an empty key set was loaded")
	}
	handler.Unreadable()
	foreign := testkit.Need(New("https://other.example.com", exampleKeys(t)))(t)
	if err := handler.Publish(foreign); err == nil {
		t.Error("documents of another issuer were published")
	}
	if err := handler.Publish(Documents{}); err == nil {
		t.Error("no documents were published")
	}
	if got := body(t, ask(handler, http.MethodGet, jwksPath)); got != string(documents.JWKS()) || !handler.Loaded() {
		t.Errorf("served is %s", got)
	}
	testkit.Must(t, testkit.Err(handler.Load([]byte(goodConfiguration), []byte(goodSet))))
	if got := body(t, ask(handler, http.MethodGet, jwksPath)); got != goodSet {
		t.Errorf("served is %s, want the new documents", got)
	}
}

func TestRecorderCounts(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	registry := prometheus.NewPedanticRegistry()
	recorder := NewRecorder(registry, func() time.Time { return now })
	handler := NewHandler(Settings{Issuer: testIssuer, Recorder: recorder})

	if testutil.CollectAndCount(ageCollector{recorder}) != 0 {
		t.Error("there is an age before there are documents")
	}
	ask(handler, http.MethodGet, jwksPath)
	handler.Unreadable()
	documents := exampleDocuments(t)
	testkit.Must(t, handler.Publish(documents))
	now = now.Add(90 * time.Second)
	testkit.Must(t, testkit.Err(handler.Load(documents.Configuration(), documents.JWKS())))
	ask(handler, http.MethodGet, jwksPath)
	ask(handler, http.MethodGet, jwksPath, "If-None-Match", "*")
	ask(handler, http.MethodPost, configurationPath)
	ask(handler, http.MethodGet, "/")
	if _, err := handler.Load([]byte("{"), []byte(goodSet)); err == nil {
		t.Fatal("half a document was loaded")
	}
	recorder.CertificateLoaded(time.Unix(1_800_000_000, 0))
	recorder.CertificateRefused()

	const want = `
# HELP credence_discovery_certificate_expiry_timestamp_seconds When the serving certificate expires, in seconds since 1970.
# TYPE credence_discovery_certificate_expiry_timestamp_seconds gauge
credence_discovery_certificate_expiry_timestamp_seconds 1.8e+09
# HELP credence_discovery_certificate_refusals_total Serving certificates and keys that were not taken; the last good pair stays in use.
# TYPE credence_discovery_certificate_refusals_total counter
credence_discovery_certificate_refusals_total 1
# HELP credence_discovery_documents_age_seconds Seconds since the documents that are served were loaded; absent until then.
# TYPE credence_discovery_documents_age_seconds gauge
credence_discovery_documents_age_seconds 90
# HELP credence_discovery_load_refusals_total Documents that were not taken from the source, by reason; the last good ones stay served.
# TYPE credence_discovery_load_refusals_total counter
credence_discovery_load_refusals_total{reason="algorithms"} 0
credence_discovery_load_refusals_total{reason="issuer"} 0
credence_discovery_load_refusals_total{reason="json"} 1
credence_discovery_load_refusals_total{reason="jwks_uri"} 0
credence_discovery_load_refusals_total{reason="key"} 0
credence_discovery_load_refusals_total{reason="key_set"} 0
credence_discovery_load_refusals_total{reason="metadata"} 0
credence_discovery_load_refusals_total{reason="private"} 0
credence_discovery_load_refusals_total{reason="revoked"} 0
credence_discovery_load_refusals_total{reason="size"} 0
credence_discovery_load_refusals_total{reason="unreadable"} 1
# HELP credence_discovery_requests_total Requests by document and status code.
# TYPE credence_discovery_requests_total counter
credence_discovery_requests_total{code="200",document="jwks"} 1
credence_discovery_requests_total{code="200",document="openid-configuration"} 0
credence_discovery_requests_total{code="304",document="jwks"} 1
credence_discovery_requests_total{code="304",document="openid-configuration"} 0
credence_discovery_requests_total{code="404",document="other"} 1
credence_discovery_requests_total{code="405",document="jwks"} 0
credence_discovery_requests_total{code="405",document="openid-configuration"} 1
credence_discovery_requests_total{code="503",document="jwks"} 1
credence_discovery_requests_total{code="503",document="openid-configuration"} 0
# HELP credence_discovery_source_healthy 1 if the newest documents of the source are the ones that are served, 0 if they are refused or cannot be read.
# TYPE credence_discovery_source_healthy gauge
credence_discovery_source_healthy 0
`
	testkit.Expect(t, testutil.GatherAndCompare(registry, strings.NewReader(want)))
}

// FuzzHandler requests any path: only two have documents, and every answer is complete and safe.
func FuzzHandler(f *testing.F) {
	f.Add("GET", jwksPath, "*")
	f.Add("HEAD", configurationPath, `W/"a,b", "c`)
	f.Add("POST", jwksPath, "")
	f.Add("GET", "/garden/issuer/%2e%2e/issuer/jwks", "\x00")
	f.Add("GET", "/garden/issuer%2Fjwks", `"`)
	handler, documents := loadedHandler(f)
	f.Fuzz(func(t *testing.T, method, path, field string) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Method = method
		parsed, err := request.URL.Parse(path)
		if err != nil {
			return
		}
		request.URL = parsed
		request.Header["If-None-Match"] = []string{field}
		recorded := httptest.NewRecorder()
		handler.ServeHTTP(recorded, request)
		response := recorded.Result()
		known := parsed.Path == jwksPath || parsed.Path == configurationPath
		switch response.StatusCode {
		case http.StatusOK, http.StatusNotModified:
			if !known || (method != http.MethodGet && method != http.MethodHead) {
				t.Errorf("%s %s is answered %d", method, path, response.StatusCode)
			}
			if got := recorded.Body.String(); got != "" && got != string(documents.JWKS()) && got != string(documents.Configuration()) {
				t.Errorf("%s %s is answered with %q", method, path, got)
			}
		case http.StatusMethodNotAllowed:
			if !known || response.Header.Get("Allow") == "" {
				t.Errorf("%s %s is answered 405", method, path)
			}
		case http.StatusNotFound:
		default:
			t.Errorf("%s %s is answered %d", method, path, response.StatusCode)
		}
		if response.Header.Get("Strict-Transport-Security") == "" || response.Header.Get("Cache-Control") == "" {
			t.Errorf("%s %s is answered with header %v", method, path, response.Header)
		}
	})
}
