package source

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const testIssuer = identity.Issuer("https://identity.example.com")

// newDocuments are good ones that no other call returns.
func newDocuments(t testing.TB) discovery.Documents {
	t.Helper()
	return documentsOf(t, newPublicKey(t))
}

func newPublicKey(t testing.TB) crypto.PublicKey {
	t.Helper()
	key := testkit.Need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return key.Public()
}

func documentsOf(t testing.TB, publics ...crypto.PublicKey) discovery.Documents {
	t.Helper()
	var keys []identity.PublicKey
	for _, public := range publics {
		key := testkit.Need(identity.NewPublicKey(public))(t)
		keys = append(keys, key)
	}
	documents := testkit.Need(discovery.New(testIssuer, keys))(t)
	return documents
}

// published is the real handler, which also counts what it refused.
type published struct {
	*discovery.Handler
	mu         sync.Mutex
	loads      int
	refusals   int
	unreadable int
	offered    map[string]bool // key sets
	expected   time.Time
}

func newPublished() *published {
	return &published{Handler: discovery.NewHandler(discovery.Settings{Issuer: testIssuer}), offered: map[string]bool{}}
}

func (p *published) Load(configuration, jwks []byte) (discovery.Documents, error) {
	documents, err := p.Handler.Load(configuration, jwks)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads++
	p.offered[string(jwks)] = true
	if err != nil {
		p.refusals++
	}
	return documents, err
}

func (p *published) Expect(nextChange time.Time) {
	p.Handler.Expect(nextChange)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = nextChange
}

func (p *published) Unreadable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreadable++
}

func (p *published) counts() (loads, refusals, unreadable int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loads, p.refusals, p.unreadable
}

// saw reports whether documents were offered at any time.
func (p *published) saw(documents discovery.Documents) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offered[string(documents.JWKS())]
}

// serves reports whether a relying party gets these documents.
func (p *published) serves(documents discovery.Documents) bool {
	response := httptest.NewRecorder()
	p.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/jwks", nil))
	return response.Code == http.StatusOK && response.Body.String() == string(documents.JWKS())
}

// start runs f until the test ends, and waits for it to return.
func start(t testing.TB, f func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("run did not return after its context was done")
		}
	})
	t.Cleanup(stop)
	return stop
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }
