package credential_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

func TestFreshIsServedToAllUntilTheMargin(t *testing.T) {
	cases := []struct {
		name             string
		lifetime, margin time.Duration
		served           time.Duration
	}{
		{"an hour", time.Hour, 0, time.Hour - credential.DefaultMargin},
		{"an hour, five minutes", time.Hour, 5 * time.Minute, 55 * time.Minute},
		{"an hour, no margin", time.Hour, -1, time.Hour},
		{"half a minute", 30 * time.Second, 0, 15 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.authority.lifetime, w.margin = c.lifetime, c.margin
			start := w.clock
			for pid := range 10 {
				got := w.want(100+pid, "token-1")
				if !got.Expires.Equal(start.Add(c.served)) {
					t.Errorf("reported to expire after %s, want %s", got.Expires.Sub(start), c.served)
				}
			}
			w.clock = start.Add(c.served - 1)
			w.want(200, "token-1")
			w.clock = start.Add(c.served)
			w.want(200, "token-2")
			if w.authority.logins != 1 || w.authority.refreshes != 1 {
				t.Errorf("%d logins, %d refreshes, want one each", w.authority.logins, w.authority.refreshes)
			}
			if w.authority.requests[1].Refused {
				t.Error("a credential in its margin was taken for refused")
			}
			w.quiet()
		})
	}
}

func TestKeptIsWhatServeReturnsWithoutTheSource(t *testing.T) {
	w := newWorld(t)
	kept := func(pid int) string {
		c, _ := w.provider(client(pid)).Kept(w.authority.Key(), interactively())
		return c.Token.Reveal()
	}
	if got := kept(1); got != "" {
		t.Fatalf("kept before anything was: %q", got)
	}
	if _, err := os.Stat(w.file()); err == nil {
		t.Fatal("a file was made")
	}
	w.want(1, "token-1")
	if got := kept(2); got != "token-1" {
		t.Errorf("kept for another client: %q", got)
	}
	w.pass(time.Minute)
	for _, pid := range []int{1, 2} {
		if got := kept(pid); got != "" {
			t.Errorf("kept for client %d that was served it before: %q", pid, got)
		}
	}
	w.pass(time.Hour)
	if got := kept(3); got != "" {
		t.Errorf("kept beyond its expiry: %q", got)
	}
	w.quiet()
}

// An outage throws nothing away, and a credential is served while it is valid, never beyond.
func TestOutage(t *testing.T) {
	w := newWorld(t)
	start := w.clock
	w.want(1, "token-1")
	w.authority.down = errDown
	w.clock = start.Add(time.Hour - 10*time.Second)
	got := w.want(2, "token-1")
	if !got.Expires.Equal(start.Add(time.Hour)) {
		t.Errorf("in its margin the expiry is %s, want the real one, so that the client does not run the program for each request", got.Expires)
	}
	w.shown("connection refused", "served is the credential that is kept")
	w.want(2, "token-1") // requested again within the same moment, when the outage is remembered
	w.clock = start.Add(time.Hour)
	if err := w.wantError(3, interactively(), errDown); errors.Is(err, credential.ErrNeedsPerson) || errors.Is(err, credential.ErrRefused) {
		t.Errorf("an outage is reported as %v", err)
	}
	w.authority.down = nil
	w.want(4, "token-2")
	if w.authority.logins != 1 || w.authority.refreshes != 1 {
		t.Errorf("%d logins, %d refreshes, want one each: the refresh token outlives the outage", w.authority.logins, w.authority.refreshes)
	}
}

func TestRotatingStateIsUsedOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.want(i+1, "token-"+[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"}[i])
		w.pass(time.Hour)
	}
	if w.authority.logins != 1 || w.authority.refreshes != 19 {
		t.Errorf("%d logins, %d refreshes", w.authority.logins, w.authority.refreshes)
	}
}

// A state that the source has kept is the one of the next time, whatever happens after it.
func TestKeptStateSurvivesAFailure(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.pass(time.Hour)
	w.authority.change = func(c *credential.Credential, state *json.RawMessage, err *error) {
		w.must(w.authority.requests[1].Keep(*state))
		*c, *state, *err = credential.Credential{}, nil, errDown
	}
	w.wantError(2, silently(), errDown)
	w.authority.change = nil
	w.want(3, "token-3")
	if w.authority.logins != 1 {
		t.Errorf("%d logins", w.authority.logins)
	}
}

// The same if the process dies in Obtain: Keep has written already.
func TestKeepWritesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.authority.change = func(_ *credential.Credential, state *json.RawMessage, _ *error) {
		w.must(w.authority.requests[0].Keep(*state))
		if list := w.list(); len(list) != 1 || !list[0].Renewable || list[0].Token {
			t.Errorf("on disk after Keep: %+v", list)
		}
	}
	w.want(1, "token-1")
}

func TestStateOfAFailedAttempt(t *testing.T) {
	for _, c := range []struct {
		name      string
		state     json.RawMessage
		renewable bool
	}{{"nil leaves it", nil, true}, {"null removes it", json.RawMessage("null"), false}, {"another replaces it", json.RawMessage("1"), true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.want(1, "token-1")
			w.pass(time.Hour)
			w.authority.change = func(got *credential.Credential, state *json.RawMessage, err *error) {
				*got, *state, *err = credential.Credential{}, c.state, errDown
			}
			w.wantError(2, silently(), errDown)
			if list := w.list(); len(list) != 1 || list[0].Renewable != c.renewable {
				t.Errorf("kept: %+v", list)
			}
		})
	}
}

// An unusable credential is neither served nor stored; its state is stored, since the one before may be used up.
func TestBadCredentialOfASource(t *testing.T) {
	cases := map[string]struct {
		change func(*credential.Credential)
		want   string
	}{
		"expired":     {func(c *credential.Credential) { c.Expires = c.Expires.Add(-time.Hour) }, "is the clock right?"},
		"line feed":   {func(c *credential.Credential) { c.Token = credential.NewSecret("geheim\n") }, "byte 7 of 7"},
		"nothing":     {func(c *credential.Credential) { c.Token = credential.Secret{} }, "neither a token nor a certificate"},
		"half a pair": {func(c *credential.Credential) { c.CertificatePEM = []byte("x") }, "without its private key"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.authority.change = func(got *credential.Credential, _ *json.RawMessage, _ *error) { c.change(got) }
			if err := w.wantError(1, interactively(), nil); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("error %q, want %q", err, c.want)
			}
			if list := w.list(); len(list) != 1 || list[0].Token || !list[0].Renewable {
				t.Errorf("kept: %+v", list)
			}
			w.authority.change = nil
			w.want(2, "token-2")
			if w.authority.logins != 1 {
				t.Errorf("%d logins", w.authority.logins)
			}
		})
	}
}

// A credential without an expiry is only for the processes that wait for it.
func TestWithoutExpiryNothingIsServedLater(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = 0
	if got := w.want(1, "token-1"); !got.Expires.IsZero() {
		t.Errorf("expires %s", got.Expires)
	}
	w.want(2, "token-2")
	if w.authority.logins != 1 || w.authority.refreshes != 1 {
		t.Errorf("%d logins, %d refreshes", w.authority.logins, w.authority.refreshes)
	}
}

func TestClockThatJumps(t *testing.T) {
	for _, c := range []struct {
		name string
		jump time.Duration
	}{{"backwards", -24 * time.Hour}, {"a quarter of a minute backwards", -15 * time.Second}, {"forwards", 24 * time.Hour}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.want(1, "token-1")
			w.pass(c.jump)
			w.want(2, "token-2")
			if w.authority.requests[1].Refused {
				t.Error("a jump was taken for a refusal")
			}
			w.want(3, "token-2")
			w.pass(-c.jump)
			if c.jump < 0 {
				// Here it has lived its time, but for a second.
				if c.jump < -time.Hour {
					w.want(4, "token-3")
				} else {
					w.want(4, "token-2")
				}
				return
			}
			w.want(4, "token-3")
		})
	}
}

// A clock that is corrected by a few seconds costs no login.
func TestClockThatIsCorrected(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.pass(-5 * time.Second)
	w.want(2, "token-1")

	// A remembered failure is not tried again either.
	w = newWorld(t)
	w.authority.down = errDown
	w.wantError(1, interactively(), errDown)
	w.pass(-time.Second)
	if _, err := w.provider(client(1)).Serve(t.Context(), w.authority, interactively()); err == nil || w.authority.attempts != 1 {
		t.Errorf("error %v after %d attempts", err, w.authority.attempts)
	}
}

// A failure in the future is not remembered until then.
func TestFailureOfAClockThatWasSetBack(t *testing.T) {
	w := newWorld(t)
	w.authority.down = errDown
	w.wantError(1, interactively(), errDown)
	w.pass(-24 * time.Hour)
	w.authority.down = nil
	w.want(1, "token-1")
}

func TestWithoutFolderOrKeyTheSourceIsAskedEachTime(t *testing.T) {
	w := newWorld(t)
	p := w.provider(client(1))
	p.Folder = ""
	for _, token := range []string{"token-1", "token-2"} {
		c, err := p.Serve(t.Context(), w.authority, interactively())
		if err != nil || c.Token.Reveal() != token {
			t.Fatalf("got %q, %v", c.Token.Reveal(), err)
		}
		if err := w.authority.requests[0].Keep(nil); err == nil {
			t.Error("a state is reported as kept")
		}
	}
	testkit.Must(t, testkit.Err(w.provider(client(1)).Serve(t.Context(), keyless{w.authority}, interactively())))
	if _, err := os.Stat(w.folder); err == nil {
		t.Error("a folder was made")
	}
	if w.authority.logins != 3 {
		t.Errorf("%d logins", w.authority.logins)
	}
	w.quiet()
}

type keyless struct{ *authority }

func (keyless) Key() map[string]string { return nil }

// A user who requests a new credential gets one, despite a fresh one or a failure.
func TestRenew(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	for i, token := range []string{"token-2", "token-3"} {
		c, err := w.provider(client(1)).Renew(t.Context(), w.authority, interactively())
		if err != nil || c.Token.Reveal() != token {
			t.Fatalf("got %q, %v", c.Token.Reveal(), err)
		}
		if w.authority.requests[i+1].Refused {
			t.Error("taken for a refusal")
		}
	}
	w.authority.down = errDown
	for range 2 {
		if _, err := w.provider(client(1)).Renew(t.Context(), w.authority, interactively()); !errors.Is(err, errDown) || errors.Is(err, credential.ErrRemembered) {
			t.Fatalf("error %v", err)
		}
	}
	w.want(9, "token-3")
}

// A canceled request is not a failure of the source.
func TestGivenUpIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.authority.during = cancel
	w.authority.down = context.Canceled
	if _, err := w.provider(client(1)).Serve(ctx, w.authority, interactively()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.authority.during, w.authority.down = nil, nil
	w.want(1, "token-1")
}
