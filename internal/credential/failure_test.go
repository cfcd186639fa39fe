package credential_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

// kubectl runs a provider that fails six times. One page is opened for it, and one network call is made.
func TestFailureIsNotRepeatedForEachRetryOfAClient(t *testing.T) {
	cases := map[string]struct {
		fail func(*authority)
		want error
	}{
		"no login": {func(a *authority) { a.away = true }, credential.ErrNeedsPerson},
		"refused":  {func(a *authority) { a.down = fmt.Errorf("sign in: %w", credential.ErrRefused) }, credential.ErrRefused},
		"outage":   {func(a *authority) { a.down = errDown }, nil},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			c.fail(w.authority)
			first := w.wantError(1, interactively(), c.want)
			for range 5 {
				w.pass(100 * time.Millisecond)
				err := w.wantError(1, interactively(), c.want)
				if !errors.Is(err, credential.ErrRemembered) || !strings.Contains(err.Error(), first.Error()) {
					t.Errorf("retry: %v, want that it is remembered, with the first error", err)
				}
				if c.want == nil && (errors.Is(err, credential.ErrNeedsPerson) || errors.Is(err, credential.ErrRefused)) {
					t.Errorf("an outage is remembered as %v", err)
				}
			}
			if w.authority.attempts != 1 {
				t.Errorf("%d attempts", w.authority.attempts)
			}
			// A person who runs kubectl again does so for a reason.
			w.authority.down, w.authority.away = nil, false
			w.want(2, "token-1")
			w.want(1, "token-1")
		})
	}
}

// Two clients that retry side by side both get the remembered failure.
func TestFailureIsRememberedForEachClientThatWasTold(t *testing.T) {
	w := newWorld(t)
	w.authority.away = true
	for range 6 {
		w.wantError(1, interactively(), credential.ErrNeedsPerson)
		w.wantError(2, interactively(), credential.ErrNeedsPerson)
		w.pass(time.Second)
	}
	if w.authority.asked != 2 {
		t.Errorf("%d pages were opened, want one for each client", w.authority.asked)
	}
}

// A long-running client tries again, with growing pauses.
func TestFailuresOfALongRunningClient(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(*authority)
		want string
	}{
		{"outage", func(a *authority) { a.down = errDown }, "[0s 5s 15s 35s 1m15s 2m15s 3m15s 4m15s]"},
		{"no login", func(a *authority) { a.away = true }, "[0s 30s 1m30s 3m30s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.fail(w.authority)
			start, at := w.clock, []time.Duration(nil)
			w.authority.during = func() { at = append(at, w.clock.Sub(start)) }
			for range 300 {
				w.wantError(1, interactively(), nil)
				w.pass(time.Second)
			}
			if got := fmt.Sprint(at); got != c.want {
				t.Errorf("attempts at %s, want %s", got, c.want)
			}
		})
	}
}

// watch kubectl get pods, overnight: each run is a new client, and the user is away.
func TestUnattendedLoopOpensFewPages(t *testing.T) {
	w := newWorld(t)
	w.authority.away = true
	for i := range 8 * 3600 / 10 {
		w.wantError(1000+i, interactively(), credential.ErrNeedsPerson)
		w.pass(10 * time.Second)
	}
	if w.authority.asked < 5 || w.authority.asked > 20 {
		t.Errorf("%d pages were opened in a night", w.authority.asked)
	}
	// In the morning the user logs in on purpose.
	w.authority.away = false
	testkit.Must(t, testkit.Err(w.provider(client(1)).Renew(t.Context(), w.authority, interactively())))
	w.want(2, "token-1")
}

// Where the user could not be prompted, the next client may be able to.
func TestFailureWithoutAPersonIsNotOneForAPerson(t *testing.T) {
	w := newWorld(t)
	for range 10 {
		w.wantError(1, silently(), credential.ErrNeedsPerson)
	}
	if w.authority.attempts != 1 {
		t.Errorf("%d attempts", w.authority.attempts)
	}
	w.want(1, "token-1")
}

// A script, or a person at a prompt, runs the program without the protocol: from one shell, and repeatedly.
func TestFailureIsNotRememberedForAScript(t *testing.T) {
	w := newWorld(t)
	w.authority.down = errDown
	ask := interactively()
	ask.FromClient = false
	for range 3 {
		w.wantError(1, ask, errDown)
	}
	if w.authority.attempts != 3 {
		t.Errorf("%d attempts", w.authority.attempts)
	}
}

// The message of the other side is kept in one line, bounded, and cannot move the cursor.
func TestMessageOfARememberedFailure(t *testing.T) {
	w := newWorld(t)
	w.authority.down = errors.New("broken\x1b[2J\nmuch: " + strings.Repeat("é", 5000))
	w.wantError(1, interactively(), nil)
	err := w.wantError(1, interactively(), credential.ErrRemembered)
	if text := err.Error(); strings.ContainsAny(text, "\x1b\n") || len([]rune(text)) > 1200 || !strings.Contains(text, "much") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// A failure is not reported anew to a process after an exec: kubectl may exec between its attempts.
func TestFailureIsRememberedForAClientThatBecomesAnother(t *testing.T) {
	w := newWorld(t)
	w.authority.down = errDown
	caller := client(1)
	for _, program := range []string{"dispatcher", "kubectl"} {
		caller.Program = program
		if _, err := w.provider(caller).Serve(t.Context(), w.authority, interactively()); err == nil {
			t.Fatal("no error")
		}
	}
	if w.authority.attempts != 1 {
		t.Errorf("%d attempts", w.authority.attempts)
	}
}
