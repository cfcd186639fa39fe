package credential_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
)

var errDown = errors.New("dial tcp: connection refused")

// authority is a Source whose other side rotates refresh tokens: each is good once, and the second use of one ends the
// session. Its state is the number of the refresh token.
type authority struct {
	t   *testing.T
	now func() time.Time

	mu sync.Mutex
	// lifetime of credentials; 0: unknown.
	lifetime time.Duration
	// down is the error of every call.
	down error
	// away is true if no user is there to log in.
	away bool
	// good are the refresh tokens that have not been used, of sessions that have not ended.
	good map[int]bool
	// used are those that have been.
	used map[int]bool

	issued, logins, refreshes, attempts, asked int
	// requests are all calls so far.
	requests []credential.Request
	// during is called in each call.
	during func()
	// change changes the answer.
	change func(*credential.Credential, *json.RawMessage, *error)
}

func (a *authority) Key() map[string]string { return map[string]string{"source": "authority"} }

func (a *authority) Obtain(_ context.Context, r credential.Request) (credential.Credential, json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	a.attempts++
	if a.during != nil {
		a.during()
	}
	c, state, err := a.answer(r)
	if a.change != nil {
		a.change(&c, &state, &err)
	}
	return c, state, err
}

func (a *authority) answer(r credential.Request) (credential.Credential, json.RawMessage, error) {
	if a.down != nil {
		return credential.Credential{}, nil, a.down
	}
	if state := r.State(); state != nil {
		var token int
		if err := json.Unmarshal(state, &token); err != nil {
			a.t.Errorf("state %s: %v", state, err)
		}
		if a.used[token] {
			a.t.Errorf("refresh token %d was used a second time", token)
		}
		if !a.good[token] {
			return credential.Credential{}, json.RawMessage("null"), fmt.Errorf("refresh: invalid_grant: %w", credential.ErrRefused)
		}
		delete(a.good, token)
		a.used[token] = true
		a.refreshes++
		return a.issue()
	}
	if !r.ExecInfo.Interactive {
		return credential.Credential{}, nil, fmt.Errorf("log in: %w", credential.ErrNeedsPerson)
	}
	a.asked++
	if a.away {
		return credential.Credential{}, nil, fmt.Errorf("no login: %w", credential.ErrNeedsPerson)
	}
	a.logins++
	return a.issue()
}

// end ends all sessions.
func (a *authority) end() { a.good = nil }

func (a *authority) issue() (credential.Credential, json.RawMessage, error) {
	a.issued++
	if a.good == nil {
		a.good = map[int]bool{}
	}
	if a.used == nil {
		a.used = map[int]bool{}
	}
	a.good[a.issued] = true
	c := credential.Credential{Token: credential.NewSecret(fmt.Sprintf("token-%d", a.issued))}
	if a.lifetime > 0 {
		c.Expires = a.now().Add(a.lifetime)
	}
	return c, json.RawMessage(fmt.Sprint(a.issued)), nil
}

// screen is a Terminal.
type screen struct {
	mu      sync.Mutex
	notices []string
	onShown func(int)
}

func (s *screen) Notice(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, fmt.Sprintf(format, args...))
	if s.onShown != nil {
		s.onShown(len(s.notices))
	}
}

func (s *screen) OpenURL(string) error { return nil }

// take returns what was shown since the last time.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.notices = nil }()
	return strings.Join(s.notices, "\n")
}

// world is one user's machine.
type world struct {
	t         *testing.T
	clock     time.Time
	authority *authority
	screen    *screen
	folder    string
	margin    time.Duration
	lockTime  time.Duration
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), screen: &screen{}, folder: filepath.Join(t.TempDir(), "cache")}
	w.authority = &authority{t: t, lifetime: time.Hour, now: func() time.Time { return w.clock }}
	return w
}

func client(pid int) credential.Caller { return credential.Caller{PID: pid, Started: "1"} }

func (w *world) provider(caller credential.Caller) *credential.Provider {
	return &credential.Provider{
		Folder: w.folder, Now: func() time.Time { return w.clock }, Caller: caller, Terminal: w.screen,
		Margin: w.margin, LockTimeout: w.lockTime, Patience: -1,
	}
}

func interactively() credential.ExecInfo {
	return credential.ExecInfo{APIVersion: credential.V1, Interactive: true, FromClient: true}
}

func silently() credential.ExecInfo {
	return credential.ExecInfo{APIVersion: credential.V1, FromClient: true}
}

func (w *world) serve(pid int, info credential.ExecInfo) (credential.Credential, error) {
	return w.provider(client(pid)).Serve(w.t.Context(), w.authority, info)
}

// want expects that a client is served a token.
func (w *world) want(pid int, token string) credential.Credential {
	w.t.Helper()
	c, err := w.serve(pid, interactively())
	if err != nil || c.Token.Reveal() != token {
		w.t.Fatalf("client %d got %q, %v, want %s", pid, c.Token.Reveal(), err, token)
	}
	return c
}

// wantError expects that a client is served nothing.
func (w *world) wantError(pid int, info credential.ExecInfo, target error) error {
	w.t.Helper()
	c, err := w.serve(pid, info)
	if err == nil || target != nil && !errors.Is(err, target) {
		w.t.Fatalf("client %d got %q, error %v, want %v", pid, c.Token.Reveal(), err, target)
	}
	return err
}

func (w *world) pass(d time.Duration) { w.clock = w.clock.Add(d) }

func (w *world) file() string {
	return filepath.Join(w.folder, string(cache.NameOf(w.authority.Key())))
}

// quiet expects that nothing was shown.
func (w *world) quiet() {
	w.t.Helper()
	if shown := w.screen.take(); shown != "" {
		w.t.Errorf("shown: %s", shown)
	}
}

// shown expects that texts were shown.
func (w *world) shown(texts ...string) {
	w.t.Helper()
	shown := w.screen.take()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			w.t.Errorf("shown is %q, want %q", shown, text)
		}
	}
}

func (w *world) list() []credential.Kept {
	w.t.Helper()
	list, err := credential.List(w.folder)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// block puts a folder where a file would have to be written.
func (w *world) block(suffix string) (free func()) {
	w.t.Helper()
	path := w.file() + suffix
	w.must(os.MkdirAll(w.folder, 0o700))
	w.must(os.MkdirAll(filepath.Join(path, "full"), 0o700))
	return func() { w.must(os.RemoveAll(path)) }
}

func (w *world) fileOf(source credential.Source) string {
	return filepath.Join(w.folder, string(cache.NameOf(source.Key())))
}

// damage changes a byte of the stored file, if there is one.
func damage(w *world, random *rand.Rand) {
	data, err := os.ReadFile(w.file())
	if err != nil || len(data) == 0 {
		return
	}
	data[random.IntN(len(data))] ^= 1 << random.IntN(8)
	w.must(os.WriteFile(w.file(), data, 0o600))
}
