package oidc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/test/testkit"
)

// patience bounds what may hang, and is no measure of speed.
const patience = 5 * time.Minute

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// terminal is a person in front of the client. Their browser runs beside the login, as a real one does.
type terminal struct {
	open func(address string) error

	mu      sync.Mutex
	notices []string
	opened  []string
}

func (t *terminal) Notice(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices = append(t.notices, fmt.Sprintf(format, args...))
}

func (t *terminal) OpenURL(address string) error {
	t.mu.Lock()
	t.opened = append(t.opened, address)
	t.mu.Unlock()
	if t.open == nil {
		return errors.New("no browser")
	}
	return t.open(address)
}

// person is a terminal whose person logs in; pages are what their browser showed in the end.
func person(t *testing.T, browser *oidctest.Browser) (*terminal, <-chan oidctest.Page) {
	pages := make(chan oidctest.Page, 8)
	return &terminal{open: func(address string) error {
		go func() {
			page, err := browser.Open(address)
			testkit.Expect(t, err, "the browser")
			pages <- page
		}()
		return nil
	}}, pages
}

// untilDone is a clock on which the time never passes.
func untilDone(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

func newSource(t *testing.T, p *oidctest.Provider, change ...func(*oidc.Config)) *oidc.Source {
	t.Helper()
	config := oidc.Config{Settings: settings.Settings{Issuer: p.Issuer, ClientID: oidctest.ClientID, CAFile: p.CAFile}, Now: p.Now, Wait: untilDone}
	for _, c := range change {
		c(&config)
	}
	source := testkit.Need(oidc.New(config))(t)
	return source
}

// got is what Obtain returned, and the state kept meanwhile.
type got struct {
	credential credential.Credential
	state      json.RawMessage
	kept       []json.RawMessage
	err        error
}

var secrets = regexp.MustCompile(`(code|access|refresh|device|cookie)-[0-9]{6}|eyJ|hunter2`)

func obtain(t *testing.T, s *oidc.Source, person credential.Terminal, state json.RawMessage, interactive bool) got {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return obtainIn(ctx, t, s, person, state, interactive)
}

func obtainIn(ctx context.Context, t *testing.T, s *oidc.Source, person credential.Terminal, state json.RawMessage, interactive bool) got {
	t.Helper()
	var g got
	request := credential.Request{
		ExecInfo: credential.ExecInfo{APIVersion: credential.V1, Interactive: interactive},
		Terminal: person,
		Keep:     func(state json.RawMessage) error { g.kept = append(g.kept, state); return nil },
	}
	if state != nil {
		request.Previous = &credential.Entry{State: state}
	}
	g.credential, g.state, g.err = s.Obtain(ctx, request)
	if g.err != nil && secrets.MatchString(g.err.Error()) {
		t.Errorf("the error has a secret: %v", g.err)
	}
	if g.err != nil && !g.credential.Token.IsZero() {
		t.Errorf("an error with a credential: %v", g.err)
	}
	return g
}

// mustLogIn logs in anew.
func mustLogIn(t *testing.T, p *oidctest.Provider, s *oidc.Source) got {
	t.Helper()
	term, _ := person(t, p.Browser(t, "alice"))
	g := obtain(t, s, term, nil, true)
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g
}

func claims(t *testing.T, token credential.Secret) map[string]any {
	t.Helper()
	parts := strings.Split(token.Reveal(), ".")
	if len(parts) != 3 {
		t.Fatalf("no JWT: %d parts", len(parts))
	}
	payload := testkit.Need(base64.RawURLEncoding.DecodeString(parts[1]))(t)
	var c map[string]any
	testkit.Must(t, json.Unmarshal(payload, &c))
	return c
}

// class is the class of an error, as a Provider of credentials would see it.
func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, credential.ErrNeedsPerson):
		return "needs person"
	case errors.Is(err, credential.ErrRefused):
		return "refused"
	}
	return "outage"
}

// wantError checks class and text of an error.
func wantError(t *testing.T, err error, wantClass, text string) {
	t.Helper()
	if class(err) != wantClass || err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error of class %q: %v; want class %q and %q", class(err), err, wantClass, text)
	}
}

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
