package oidc_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/test/testkit"
)

// clients lets eight client processes request the credential of a folder at once, and returns their results.
func clients(t *testing.T, p *oidctest.Provider, folder string, screen *terminal) (string, error) {
	t.Helper()
	info := credential.ExecInfo{APIVersion: credential.V1, Interactive: true, FromClient: true}
	tokens, errs := make([]string, 8), make([]error, 8)
	var all sync.WaitGroup
	for i := range tokens {
		all.Go(func() {
			provider := &credential.Provider{Folder: folder, Now: p.Now, Terminal: screen, Caller: credential.Caller{PID: 1000 + i, Started: p.Now().String()}}
			got, err := provider.Serve(t.Context(), newSource(t, p), info)
			tokens[i], errs[i] = got.Token.Reveal(), err
		})
	}
	all.Wait()
	for i := range tokens {
		if tokens[i] != tokens[0] || (errs[i] == nil) != (errs[0] == nil) {
			t.Errorf("client %d got something else than client 0: %v, %v", i, errs[i], errs[0])
		}
	}
	return tokens[0], errs[0]
}

// One login for eight clients, one refresh for each expiry, and nothing at all for an outage that ends in time. The provider ends the
// login if a refresh token is used twice.
func TestEightClients(t *testing.T) {
	p := oidctest.Start(t, start)
	folder := filepath.Join(t.TempDir(), "kept")
	screen, _ := person(t, p.Browser(t, "alice"))

	first := testkit.Need(clients(t, p, folder, screen))(t)
	if len(screen.opened) != 1 || p.Requests("/token") != 1 {
		t.Errorf("%d logins, %d redeemed", len(screen.opened), p.Requests("/token"))
	}
	last := first
	for i := range 3 {
		p.Advance(10 * time.Minute)
		token, err := clients(t, p, folder, screen)
		if err != nil || token == last {
			t.Fatalf("after expiry %d: the same token, or %v", i+1, err)
		}
		last = token
	}
	if len(screen.opened) != 1 || p.Requests("/token") != 4 {
		t.Errorf("%d logins, %d redeemed; want 1 and 4", len(screen.opened), p.Requests("/token"))
	}

	p.End()
	p.Advance(10 * time.Minute)
	if token, err := clients(t, p, folder, screen); err != nil || token == last {
		t.Errorf("after the provider has ended the login: the same token, or %v", err)
	}
	if len(screen.opened) != 2 || !strings.Contains(strings.Join(screen.notices, "\n"), "is over") {
		t.Errorf("%d logins; notices %q", len(screen.opened), screen.notices)
	}
}
