package allocations

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring/keys"
)

const testIssuer = identity.Issuer("https://identity.example.com")

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// testRing is generated once: RSA keys are slow to make.
var testRing = sync.OnceValue(func() keys.Ring {
	ring, err := keys.Bootstrap(keys.NewPrivate, now())
	if err != nil {
		panic(err)
	}
	return ring
})

// operation is one hot path, done once by its function.
type operation struct {
	name string
	once func() error
}

func operations(t *testing.T) []operation {
	return append([]operation{
		token(t, identity.ES256), token(t, identity.RS256), plan(t),
	}, append(documents(t), reviews()...)...)
}

func token(t *testing.T, algorithm identity.Algorithm) operation {
	tokens, err := issuer.New(issuer.Config{
		Issuer: testIssuer, GardenID: "garden-1", Clock: now, Random: rand.Reader,
		Ring: func() (keys.Ring, time.Time) { return testRing(), now() },
	})
	if err != nil {
		t.Fatal(err)
	}
	request := issuer.Request{
		Identity:        issuer.Identity{Namespace: "garden-local", Name: "banana-testing", UID: "12b580fe-1f74-4195-852b-e1a74b03496a"},
		Audiences:       []string{"team-foo"},
		TargetAlgorithm: algorithm,
		Context: &issuer.Context{ServiceAccount: &issuer.ServiceAccount{
			Namespace: "shop", Name: "cart", UID: "54d09554-6a68-4f46-a23a-e3592385d820",
		}},
	}
	return operation{fmt.Sprintf("issuer: prepare and sign, %s", algorithm), func() error {
		prepared, err := tokens.Prepare(request)
		if err != nil {
			return err
		}
		_, err = tokens.Sign(t.Context(), prepared)
		return err
	}}
}

func plan(t *testing.T) operation {
	settings, err := keys.Settings{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	ring, view := testRing(), keys.View{Settings: settings, Now: now()}
	return operation{"keyring/keys: plan a ring", func() error {
		if ring.Plan(view).NextChange.IsZero() {
			return fmt.Errorf("nothing is planned")
		}
		return nil
	}}
}

// sink is a response writer that costs nothing.
type sink struct {
	header http.Header
	code   int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(code int)        { s.code = code }

func documents(t *testing.T) []operation {
	made, err := discovery.New(testIssuer, testRing().Published())
	if err != nil {
		t.Fatal(err)
	}
	handler := discovery.NewHandler(discovery.Settings{Issuer: testIssuer, Recorder: discovery.NewRecorder(prometheus.NewRegistry(), now)})
	if err := handler.Publish(made); err != nil {
		t.Fatal(err)
	}
	ask := func(url, etag string, want int) func() error {
		w, request := &sink{header: http.Header{}}, httptest.NewRequest(http.MethodGet, url, nil)
		if etag != "" {
			request.Header.Set("If-None-Match", etag)
		}
		return func() error {
			clear(w.header)
			if handler.ServeHTTP(w, request); w.code != want {
				return fmt.Errorf("%s: code %d, want %d", url, w.code, want)
			}
			return nil
		}
	}
	return []operation{
		{"discovery: configuration, 200", ask(testIssuer.ConfigurationURL(), "", http.StatusOK)},
		{"discovery: key set, 200", ask(testIssuer.JWKSURL(), "", http.StatusOK)},
		{"discovery: key set, 304", ask(testIssuer.JWKSURL(), made.JWKSETag(), http.StatusNotModified)},
		{"discovery: another path, 404", ask(testIssuer.JWKSURL()+"/other", "", http.StatusNotFound)},
	}
}
