package credential_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

// The protocol has no message for "the server refused it": a client that was served a credential, and requests again before
// its end, means that.
func TestAskedAgainBeforeExpiryMeansRefused(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.want(2, "token-1")
	w.pass(time.Minute)
	w.want(3, "token-1")
	w.want(1, "token-2")
	if r := w.authority.requests[1]; !r.Refused || r.Previous == nil || r.Previous.Credential.Token.Reveal() != "token-1" {
		t.Errorf("the source got: refused %v, previous %v", r.Refused, r.Previous)
	}
	if marks, err := os.ReadFile(w.file() + ".seen"); err != nil || strings.Count(string(marks), "\n") != 1 {
		t.Errorf("the clients of the old one are still remembered: %q, %v", marks, err)
	}
	// The others get the new one, though they were served the old one too, and without a further one.
	w.want(2, "token-2")
	w.want(3, "token-2")
	if w.authority.attempts != 2 {
		t.Errorf("%d attempts", w.authority.attempts)
	}
	w.quiet()
}

// stateless is a source whose every credential takes a person.
type stateless struct{ *authority }

func (s stateless) Obtain(ctx context.Context, r credential.Request) (credential.Credential, json.RawMessage, error) {
	r.Previous = nil
	got, _, err := s.authority.Obtain(ctx, r)
	return got, nil, err
}

// Some clients request twice in one process without a refusal. Where a new credential takes a person they get the same once
// more, and a refused one is replaced at the next request.
func TestAskedAgainWhereAPersonIsNeeded(t *testing.T) {
	w := newWorld(t)
	for i, want := range []string{"token-1", "token-1", "token-2", "token-2"} {
		p := w.provider(client(1))
		p.CostsPerson = true
		got, err := p.Serve(t.Context(), stateless{w.authority}, interactively())
		if err != nil || got.Token.Reveal() != want {
			t.Errorf("request %d: got %q, %v, want %q", i+1, got.Token.Reveal(), err, want)
		}
	}
	// With a state no person is needed: the first time counts.
	w = newWorld(t)
	for i, want := range []string{"token-1", "token-2"} {
		p := w.provider(client(1))
		p.CostsPerson = true
		if got, err := p.Serve(t.Context(), w.authority, interactively()); err != nil || got.Token.Reveal() != want {
			t.Errorf("request %d with a state: got %q, %v, want %q", i+1, got.Token.Reveal(), err, want)
		}
	}
}

// A server that refuses everything, and a client that requests every second for an hour.
func TestRefusalsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = 12 * time.Hour
	var at []time.Duration
	start := w.clock
	w.authority.during = func() { at = append(at, w.clock.Sub(start)) }
	for range 3600 {
		testkit.Must(t, testkit.Err(w.serve(1, silentlyAfterLogin(w))))
		w.pass(time.Second)
	}
	want := "[0s 1s 11s 51s 3m31s 14m11s 44m11s]"
	if got := fmt.Sprint(at); got != want {
		t.Errorf("new ones were got at %s, want %s", got, want)
	}
	// Another credential, that is got because this one expires, is thought well of again.
	w.pass(12 * time.Hour)
	w.authority.during = nil
	w.want(2, "token-8")
	w.want(2, "token-9")
	w.want(2, "token-9")
}

// at is the request of a client that names its cluster.
func at(server string) credential.ExecInfo {
	info := silently()
	info.Cluster = &credential.Cluster{Server: server}
	return info
}

// A cluster that refuses everything does not keep another one from a new credential.
func TestClustersHaveABudgetEach(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = 12 * time.Hour
	w.want(1, "token-1")
	for range 600 {
		testkit.Must(t, testkit.Err(w.serve(2, at("https://bad"))))
		w.pass(time.Second)
	}
	if w.authority.attempts > 6 {
		t.Errorf("%d credentials were got for a cluster that refuses everything for ten minutes", w.authority.attempts)
	}
	for i := range 3 {
		revoked := testkit.Need(w.serve(3+i, at("https://good")))(t)
		if got, err := w.serve(3+i, at("https://good")); err != nil || got.Token.Reveal() == revoked.Token.Reveal() {
			t.Errorf("revocation %d: the client of another cluster got the same again, error %v", i, err)
		}
		w.pass(time.Minute)
	}
}

// A credential that is revoked again and again, and whose replacement the server takes, is replaced each time.
func TestSuccessfulReplacementsDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = 12 * time.Hour
	w.want(1, "token-1")
	for i := range 20 {
		testkit.Must(t, testkit.Err(w.serve(10+i, silently())))
		w.want(10+i, fmt.Sprintf("token-%d", i+2))
		w.pass(20 * time.Second)
	}
	w.quiet()
}

// A client that gets the same again sees its end.
func TestBelievedUntil(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.want(1, "token-2")
	w.quiet()
	w.want(1, "token-2")
	w.shown("until "+w.clock.Add(10*time.Second).Local().Format(time.TimeOnly), "set provideClusterInfo")
	if _, ok := w.provider(client(1)).Kept(w.authority.Key(), silently()); ok {
		t.Error("the small program, which shows nothing, serves it")
	}
	if _, ok := w.provider(client(2)).Kept(w.authority.Key(), silently()); !ok {
		t.Error("a new client is not served what is kept")
	}
}

// Clients renew their credential somewhat before its served end, however short its life is.
func TestShortLivesAreRenewedOnTime(t *testing.T) {
	for _, lifetime := range []time.Duration{20 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 15 * time.Minute} {
		t.Run(lifetime.String(), func(t *testing.T) {
			w := newWorld(t)
			w.authority.lifetime = lifetime
			for i := range 20 {
				got := w.want(1, fmt.Sprintf("token-%d", i+1))
				if w.authority.requests[i].Refused {
					t.Fatalf("renewal %d was taken for a refusal", i)
				}
				told := got.Expires.Sub(w.clock)
				w.pass(told - min(told/11, 10*time.Second))
			}
			w.quiet()
		})
	}
}

// Refused ones are replaced all the same, and not for each request.
func TestShortLivesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = time.Minute
	for range 600 {
		testkit.Must(t, testkit.Err(w.serve(1, silentlyAfterLogin(w))))
		w.pass(time.Second)
	}
	if !w.authority.requests[1].Refused || w.authority.attempts > 80 {
		t.Errorf("%d credentials in ten minutes", w.authority.attempts)
	}
}

// A client that renews ahead, for a day.
func TestRenewedAheadIsNotRefused(t *testing.T) {
	w := newWorld(t)
	w.authority.lifetime = 15 * time.Minute
	for i := range 96 {
		w.want(1, fmt.Sprintf("token-%d", i+1))
		if w.authority.requests[i].Refused {
			t.Fatalf("renewal %d was taken for a refusal", i)
		}
		w.pass(14 * time.Minute)
	}
	// A client without it is served it still.
	w.pass(-time.Minute)
	w.want(2, "token-96")
	// If no new one is to be had, there is time.
	w.pass(time.Minute)
	w.authority.down = errDown
	w.want(1, "token-96")
	w.shown("connection refused")
}

func silentlyAfterLogin(w *world) credential.ExecInfo {
	if w.authority.logins == 0 {
		return interactively()
	}
	return silently()
}

func TestWhatIsNoRefusal(t *testing.T) {
	of := func(server string) credential.ExecInfo {
		info := interactively()
		info.Cluster = &credential.Cluster{Server: server}
		return info
	}
	cases := []struct {
		name          string
		first, second credential.Caller
		infos         [2]credential.ExecInfo
		refused       bool
	}{
		{"the same client", client(1), client(1), [2]credential.ExecInfo{interactively(), interactively()}, true},
		{"the same for the same cluster", client(1), client(1), [2]credential.ExecInfo{of("https://a"), of("https://a")}, true},
		{"the same for another cluster", client(1), client(1), [2]credential.ExecInfo{of("https://a"), of("https://b")}, false},
		{"another process", client(1), client(2), [2]credential.ExecInfo{interactively(), interactively()}, false},
		{"a later process of the same number", client(1), credential.Caller{PID: 1, Started: "2"}, [2]credential.ExecInfo{interactively(), interactively()}, false},
		{"one that has become another program", credential.Caller{PID: 1, Started: "1", Program: "a"}, credential.Caller{PID: 1, Started: "1", Program: "b"}, [2]credential.ExecInfo{interactively(), interactively()}, false},
		{"one that runs the same program", credential.Caller{PID: 1, Started: "1", Program: "a"}, credential.Caller{PID: 1, Started: "1", Program: "a"}, [2]credential.ExecInfo{interactively(), interactively()}, true},
		{"an unknown one", credential.Caller{}, credential.Caller{}, [2]credential.ExecInfo{interactively(), interactively()}, false},
		{"a script without the protocol", client(1), client(1), [2]credential.ExecInfo{{APIVersion: credential.V1, Interactive: true}, {APIVersion: credential.V1}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for i, caller := range []credential.Caller{c.first, c.second} {
				testkit.Must(t, testkit.Err(w.provider(caller).Serve(t.Context(), w.authority, c.infos[i])))
				w.pass(time.Minute)
			}
			if refused := w.authority.attempts == 2; refused != c.refused {
				t.Errorf("taken for refused: %v, want %v", refused, c.refused)
			}
		})
	}
}

// If no other is to be had, the one that seems to be refused is served in an outage, and not when the session has ended.
func TestRefusedAndNoOtherToBeHad(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.authority.down = errDown
	w.want(1, "token-1")
	w.shown("connection refused")
	w.want(1, "token-1") // remembered: not tried again
	if w.authority.attempts != 2 {
		t.Errorf("%d attempts", w.authority.attempts)
	}
	w.pass(time.Minute)
	w.authority.down = fmt.Errorf("refresh: %w", credential.ErrRefused)
	w.wantError(1, interactively(), credential.ErrRefused)
}

// The state that was refused is gone, and the next attempt is a log-in.
func TestEndedSession(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.authority.end()
	w.wantError(1, interactively(), credential.ErrRefused)
	w.wantError(1, interactively(), credential.ErrRemembered)
	w.pass(time.Hour)
	w.want(2, "token-2")
	if w.authority.logins != 2 {
		t.Errorf("%d logins", w.authority.logins)
	}
}
