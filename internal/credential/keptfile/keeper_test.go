package keptfile_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/keptfile"
	"github.com/credence-id/credence/test/testkit"
)

var (
	begin   = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	errDown = errors.New("connection refused")
)

// world is an issuer, a clock that runs only while the keeper pauses, and a file.
type world struct {
	t      *testing.T
	path   string
	now    time.Time
	skew   time.Duration // how much the issuer's clock is ahead
	life   time.Duration // 0: of an unknown end
	opaque bool
	fail   func() error
	// each is called at each pause, before the clock goes on.
	each func()

	issued, attempts, ready int
	last                    credential.Credential
	obtained                time.Time
	notices                 []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, path: filepath.Join(t.TempDir(), "token"), now: begin, life: time.Hour, fail: func() error { return nil }, each: func() {}}
}

// get is a provider that stores the last credential.
func (w *world) get(_ context.Context, newerThan time.Time) (credential.Credential, error) {
	w.attempts++
	if !w.last.Token.IsZero() && !w.obtained.Before(newerThan) && !w.obtained.After(w.now.Add(10*time.Second)) {
		return w.last, nil
	}
	if err := w.fail(); err != nil {
		if w.last.Token.IsZero() || !w.now.Before(w.last.Expires) {
			return credential.Credential{}, err
		}
		return w.last, nil
	}
	w.issued++
	w.obtained = w.now
	w.last = credential.Credential{Token: credential.NewSecret(fmt.Sprintf("opaque-%d", w.issued))}
	if w.life > 0 {
		issuedAt := w.now.Add(w.skew)
		w.last.Expires = issuedAt.Add(w.life)
		if !w.opaque {
			payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"jti":"%d"}`, issuedAt.Unix(), w.last.Expires.Unix(), w.issued)
			w.last.Token = credential.NewSecret("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
		}
	}
	return w.last, nil
}

// run runs a keeper for so long.
func (w *world) run(d time.Duration, lead time.Duration) error {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var passed time.Duration
	keeper := keptfile.Keeper{
		Path: w.path, Get: w.get, Lead: lead, Now: func() time.Time { return w.now }, Random: func() float64 { return 0.5 },
		Final: func(err error) bool { return errors.Is(err, credential.ErrRefused) },
		Pause: func(_ context.Context, pause time.Duration) error {
			if pause <= 0 || pause > 15*time.Second {
				w.t.Errorf("pauses for %s", pause)
			}
			w.each()
			w.now = w.now.Add(pause)
			if passed += pause; passed >= d {
				cancel()
			}
			return nil
		},
		Notice: func(format string, args ...any) { w.notices = append(w.notices, fmt.Sprintf(format, args...)) },
		Ready:  func() { w.ready++ },
	}
	return keeper.Run(ctx)
}

// valid fails the test unless the file has the last credential, and that is valid for a server with the issuer's clock.
func (w *world) valid() {
	w.t.Helper()
	if got := w.content(); got != w.last.Token.Reveal() {
		w.t.Errorf("at %s the file has %q", w.now, got)
	}
	if left := w.last.Expires.Sub(w.now.Add(w.skew)); w.life > 0 && left <= 0 {
		w.t.Fatalf("at %s the file has a token that expired %s ago", w.now, -left)
	}
}

func (w *world) content() string {
	w.t.Helper()
	data, err := os.ReadFile(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) shown(text string) {
	w.t.Helper()
	if !slices.ContainsFunc(w.notices, func(n string) bool { return strings.Contains(n, text) }) {
		w.t.Errorf("no notice has %q: %q", text, w.notices)
	}
}

func TestAValidTokenAtAnyTime(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*world)
		lead        time.Duration
		least, most int
	}{
		"tokens of an hour":                  {func(*world) {}, 0, 24, 40},
		"tokens without claims":              {func(w *world) { w.opaque = true }, 0, 24, 40},
		"of ten minutes":                     {func(w *world) { w.life = 10 * time.Minute }, 0, 144, 240},
		"of an unknown end":                  {func(w *world) { w.life = 0 }, 0, 96, 160},
		"replaced at a time before its end":  {func(*world) {}, 10 * time.Minute, 28, 30},
		"which is longer than half its life": {func(w *world) { w.life = 10 * time.Minute }, time.Hour, 280, 290},
		"a clock that is a year behind":      {func(w *world) { w.skew = 365 * 24 * time.Hour }, 0, 24, 40},
		"one that is half an hour ahead":     {func(w *world) { w.skew = -30 * time.Minute }, 0, 24, 145},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			w.each = w.valid
			testkit.Must(t, w.run(24*time.Hour, c.lead))
			if w.issued < c.least || w.issued > c.most || w.ready != w.issued || w.attempts != w.issued {
				t.Errorf("%d tokens in a day by %d attempts, written %d times", w.issued, w.attempts, w.ready)
			}
			if info, err := os.Stat(w.path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			for _, notice := range w.notices {
				if strings.Contains(notice, "opaque-") || strings.Contains(notice, "e30.") {
					t.Errorf("a notice has a token: %s", notice)
				}
			}
		})
	}
}

// A stored token is in the file at once, also if it is to be replaced soon.
func TestAStoredTokenIsServedFirst(t *testing.T) {
	w := newWorld(t)
	testkit.Must(t, testkit.Err(w.get(t.Context(), begin)))
	w.now = begin.Add(55 * time.Minute)
	stored := w.last.Token
	w.fail = func() error {
		if w.now.Before(begin.Add(57 * time.Minute)) {
			return errDown
		}
		return nil
	}
	w.each = func() {
		w.valid()
		if w.issued == 1 && !w.last.Token.Equal(stored) {
			t.Error("another token is in the file")
		}
	}
	if err := w.run(10*time.Minute, 0); err != nil || w.issued != 2 {
		t.Errorf("%v, %d tokens", err, w.issued)
	}
	w.shown(keptfile.ErrUnchanged.Error())
}

func TestAnOutage(t *testing.T) {
	w := newWorld(t)
	ends := begin.Add(3 * time.Hour)
	w.fail = func() error {
		if w.now.After(begin) && w.now.Before(ends) {
			return errDown
		}
		return nil
	}
	w.each = func() { _ = w.content() } // an expired token stays
	testkit.Must(t, w.run(4*time.Hour, 0))
	if w.issued < 2 || w.obtained.Before(ends) {
		t.Errorf("%d tokens, the last one at %s", w.issued, w.obtained)
	}
	if w.attempts > 60 {
		t.Errorf("%d attempts", w.attempts)
	}
	w.shown("has the last credential still, valid until 2026-07-01T13:00:00Z: " + keptfile.ErrUnchanged.Error())
	w.shown("which expired at 2026-07-01T13:00:00Z: connection refused; the next attempt is at ")
}

// Before the first credential an outage is waited out, and a refusal ends it. Afterwards neither does.
func TestTheFirstCredential(t *testing.T) {
	w := newWorld(t)
	w.fail = func() error {
		if w.now.Before(begin.Add(time.Minute)) {
			return errDown
		}
		return nil
	}
	if err := w.run(10*time.Minute, 0); err != nil || w.issued != 1 {
		t.Errorf("%v, %d tokens", err, w.issued)
	}
	w.shown("has no credential yet: connection refused; the next attempt is at 2026-07-01T12:00:")

	w = newWorld(t)
	w.fail = func() error { return credential.ErrRefused }
	if err := w.run(time.Hour, 0); !errors.Is(err, credential.ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	w = newWorld(t)
	w.fail = func() error {
		if w.now.After(begin) {
			return credential.ErrRefused
		}
		return nil
	}
	if err := w.run(2*time.Hour, 0); err != nil || w.content() != w.last.Token.Reveal() {
		t.Errorf("refused later: %v", err)
	}
}

func TestClocksThatJump(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"back by minutes": -5 * time.Minute, "back by a day": -24 * time.Hour, "forward by minutes": 50 * time.Minute, "forward by a day": 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var jumped, replaced time.Time
			w.each = func() {
				switch {
				case jumped.IsZero() && w.now.After(begin.Add(20*time.Minute)):
					w.now = w.now.Add(jump)
					jumped = w.now
				case replaced.IsZero() && w.issued == 2:
					replaced = w.obtained
				}
			}
			testkit.Must(t, w.run(time.Hour, 0))
			if replaced.IsZero() || replaced.After(jumped.Add(15*time.Second)) {
				t.Errorf("the clock jumped to %s, and the token was replaced at %s", jumped, replaced)
			}
		})
	}
}

func TestWhatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	folder := filepath.Dir(w.path)
	testkit.Must(t, os.Mkdir(filepath.Join(folder, "folder"), 0o700))
	testkit.Must(t, os.Symlink("elsewhere", filepath.Join(folder, "link")))
	for name, want := range map[string]error{"missing/token": os.ErrNotExist, "folder": keptfile.ErrNotAFile, "link": keptfile.ErrNotAFile} {
		w.path = filepath.Join(folder, name)
		if err := w.run(time.Hour, 0); !errors.Is(err, want) || w.attempts > 0 {
			t.Errorf("%s: %v after %d attempts", name, err, w.attempts)
		}
	}
}

func TestTwoKeepersOfOneFile(t *testing.T) {
	w := newWorld(t)
	second := newWorld(t)
	second.path = w.path
	w.each = func() {
		if err := second.run(time.Hour, 0); !errors.Is(err, keptfile.ErrHeld) || second.attempts > 0 {
			t.Errorf("a second keeper: %v", err)
		}
	}
	testkit.Must(t, w.run(time.Minute, 0))
	testkit.Expect(t, second.run(time.Minute, 0), "after the first has ended")
}

// A process that is killed while it writes leaves a file with a secret in it. The next one removes it, and nothing of others.
func TestWhatAKilledProcessLeft(t *testing.T) {
	w := newWorld(t)
	folder := filepath.Dir(w.path)
	for _, name := range []string{".tmp-token-123", ".tmp-token-a-123", ".tmp-other-123"} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("half"), 0o600))
	}
	testkit.Must(t, w.run(time.Minute, 0))
	entries, err := os.ReadDir(folder)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{".tmp-other-123", ".tmp-token-a-123", ".token.lock", "token"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the folder has %q, want %q", names, want)
	}
}
