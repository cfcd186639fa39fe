package comparison

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

var keys = sync.OnceValue(func() []identity.PublicKey {
	list := make([]identity.PublicKey, 3)
	for i := range list {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		if list[i], err = identity.NewPublicKey(private.Public()); err != nil {
			panic(err)
		}
	}
	return list
})

func documents(t testing.TB, issuer identity.Issuer, keys ...identity.PublicKey) Documents {
	t.Helper()
	rendered := testkit.Need(discovery.New(issuer, keys))(t)
	return Documents{Configuration: rendered.Configuration(), JWKS: rendered.JWKS()}
}

func named(id string, key crypto.PublicKey) identity.PublicKey {
	return identity.PublicKey{ID: identity.KeyID(id), Algorithm: identity.ES256, Key: key}
}

func TestDifferencesOfAPublicPlace(t *testing.T) {
	const issuer = "https://id.example.com"
	a, b, c := named("a", keys()[0].Key), named("b", keys()[1].Key), named("c", keys()[2].Key)
	want := documents(t, issuer, a, b)
	changed := func(d Documents, change func(*Documents)) Documents { change(&d); return d }
	for name, test := range map[string]struct {
		got  Documents
		want []string // document: start of the detail
	}{
		"the same":         {got: documents(t, issuer, a, b)},
		"a key is missing": {got: documents(t, issuer, a), want: []string{`jwks: key "b" is missing`}},
		"a key too many":   {got: documents(t, issuer, a, b, c), want: []string{`jwks: key "c" is there, and should not be`}},
		"one for another":  {got: documents(t, issuer, a, c), want: []string{`jwks: key "b" is missing`, `jwks: key "c" is there`}},
		"another key under the kid": {got: documents(t, issuer, a, named("b", keys()[2].Key)),
			want: []string{`jwks: key "b" is not the same: its x differs`, `jwks: key "b" is not the same: its y differs`}},
		"another order": {got: documents(t, issuer, b, a), want: []string{"jwks: the same keys are there in another order"}},
		"a line break": {got: changed(want, func(d *Documents) { d.JWKS = append(d.JWKS[:len(d.JWKS):len(d.JWKS)], '\n') }),
			want: []string{`jwks: means the same, but is not the same bytes: at byte `}},
		"a page": {got: Documents{Configuration: []byte("<html>"), JWKS: []byte("<html>")}, want: []string{"jwks: is not a key set", "openid-configuration: is not a JSON object"}},
		"null":   {got: changed(want, func(d *Documents) { d.JWKS = []byte("null") }), want: []string{`jwks: key "a" is missing`, `jwks: key "b" is missing`}},
		"of another": {got: documents(t, "https://other.example.com", a, b),
			want: []string{
				`openid-configuration: issuer is "https://other.example.com", and should be "https://id.example.com"`,
				`openid-configuration: jwks_uri is "https://other.example.com/jwks", and should be`,
			}},
		"a member less": {got: changed(want, func(d *Documents) { d.Configuration = []byte(`{"issuer":"https://id.example.com","x":1}`) }),
			want: []string{
				"openid-configuration: id_token_signing_alg_values_supported is missing", "openid-configuration: jwks_uri is missing",
				"openid-configuration: response_types_supported is missing", "openid-configuration: subject_types_supported is missing",
				"openid-configuration: x is there, and should not be",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			differences := Compare(want, test.got)
			if len(differences) != len(test.want) {
				t.Fatalf("%d differences, want %d: %v", len(differences), len(test.want), differences)
			}
			for i, difference := range differences {
				if got := difference.Document + ": " + difference.Detail; !strings.HasPrefix(got, test.want[i]) {
					t.Errorf("difference %q, want %q", got, test.want[i])
				}
			}
		})
	}
}

// place is a server of documents that a test can change.
type place struct {
	*httptest.Server

	documents Documents
	handle    http.HandlerFunc // replaces the documents
}

func newPlace(t testing.TB) *place {
	p := &place{}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *place) issuer() identity.Issuer { return identity.Issuer(p.URL + "/team") }

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.handle != nil {
		p.handle(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=60")
	switch r.URL.Path {
	case "/team/jwks":
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(p.documents.JWKS)
	case "/team/.well-known/openid-configuration":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.documents.Configuration)
	default:
		http.NotFound(w, r)
	}
}

func TestFetch(t *testing.T) {
	p := newPlace(t)
	p.documents = documents(t, p.issuer(), keys()...)
	got := testkit.Need(Fetch(t.Context(), p.Client(), string(p.issuer())))(t)
	want := Served{
		Configuration: Answer{URL: p.issuer().ConfigurationURL(), Body: p.documents.Configuration, ContentType: "application/json", CacheControl: "public, max-age=60"},
		JWKS:          Answer{URL: p.issuer().JWKSURL(), Body: p.documents.JWKS, ContentType: "application/jwk-set+json", CacheControl: "public, max-age=60"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

func TestFetchErrors(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		path   string
		client *http.Client // nil: one that trusts the place
		want   string
		outage bool
	}{
		"missing":           {handle: answer(404), want: "the server answered 404 Not Found"},
		"forbidden":         {handle: answer(403), want: "403"},
		"down":              {handle: answer(503), want: "503", outage: true},
		"throttled":         {handle: answer(429), want: "429", outage: true},
		"redirect to http":  {handle: http.RedirectHandler(plain.URL, http.StatusFound).ServeHTTP, want: "which is not https", outage: true},
		"redirect for ever": {handle: http.RedirectHandler("/x", http.StatusFound).ServeHTTP, want: "redirects more than 3 times", outage: true},
		"huge": {handle: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, discovery.MaxDocumentBytes+1))
		}, want: "longer than"},
		"cut off": {handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("x"))
		}, want: "unexpected EOF", outage: true},
		"unknown authority": {handle: answer(200), client: &http.Client{Transport: &http.Transport{}}, want: "certificate", outage: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.handle = test.handle
			client := test.client
			if client == nil {
				client = p.Client()
			}
			_, err := Fetch(t.Context(), client, string(p.issuer()))
			failed, ok := errors.AsType[*FetchError](err)
			if !ok || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "fetch "+p.issuer().JWKSURL()+": ") {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
			if failed.Outage() != test.outage {
				t.Errorf("outage %v, want %v", failed.Outage(), test.outage)
			}
		})
	}
	if _, err := Fetch(t.Context(), plain.Client(), plain.URL); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Errorf("of plain http: error %v", err)
	}
}

func TestProbe(t *testing.T) {
	p := newPlace(t)
	prober := &Prober{Issuer: p.issuer(), Client: p.Client()}
	probe := func(want ...identity.KeyID) {
		t.Helper()
		got := testkit.Need(prober.Probe(t.Context()))(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("known (-want +got):\n%s", diff)
		}
	}
	p.documents = documents(t, p.issuer(), keys()[:2]...)
	probe(keys()[0].ID, keys()[1].ID)

	// A kid that is shown with another key is not known.
	swapped := keys()[0]
	swapped.Key = keys()[2].Key
	p.documents = documents(t, p.issuer(), swapped, keys()[1])
	probe(keys()[1].ID)

	// Documents at another place, such as one edge of a CDN.
	prober = &Prober{Issuer: "https://id.example.com", URL: string(p.issuer()), Client: p.Client()}
	p.documents = documents(t, "https://id.example.com", keys()[2])
	probe(keys()[2].ID)

	// Nothing is known where relying parties would get nothing.
	for name, spoil := range map[string]func(){
		"another issuer": func() { p.documents = documents(t, p.issuer(), keys()...) },
		"two states": func() {
			p.documents = documents(t, "https://id.example.com", keys()...)
			p.documents.Configuration = []byte("{}")
		},
		"no answer": func() { p.handle = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) } },
	} {
		spoil()
		if known, err := prober.Probe(t.Context()); err == nil || known != nil {
			t.Errorf("%s: known %v, error %v", name, known, err)
		}
	}
}

func FuzzCompare(f *testing.F) {
	want := documents(f, "https://id.example.com", keys()...)
	f.Add(want.Configuration, want.JWKS)
	f.Add([]byte(`{"issuer":null}`), []byte(`{"keys":[null,{"kid":1}]}`))
	f.Add([]byte(`[]`), []byte(`{"keys":{}}`))
	f.Fuzz(func(t *testing.T, configuration, jwks []byte) {
		got := Documents{Configuration: configuration, JWKS: jwks}
		same := string(configuration) == string(want.Configuration) && string(jwks) == string(want.JWKS)
		if differences := Compare(want, got); (len(differences) == 0) != same {
			t.Errorf("the same bytes: %v, differences %v", same, differences)
		}
	})
}
