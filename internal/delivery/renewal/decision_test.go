package renewal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/test/testkit"
)

var issued = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func held() renewal.State {
	return renewal.State{
		Token: &renewal.Token{
			KeyID: "k1", Subject: "sub", Audiences: []string{"a", "b"}, IssuedAt: issued, Expiry: issued.Add(time.Hour),
		},
		RenewAt: issued.Add(40 * time.Minute).Format(time.RFC3339),
		Digest:  "digest",
	}
}

func wanted() renewal.Want {
	return renewal.Want{Subject: "sub", Audiences: []string{"a", "b"}, Digest: "digest", Revoked: func(id string) bool { return id == "stolen" }}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*renewal.State, *renewal.Want)
		after  time.Duration
		want   renewal.Reason
	}{
		"nothing to do":              {nil, 10 * time.Minute, ""},
		"a second before its time":   {nil, 40*time.Minute - time.Second, ""},
		"its time":                   {nil, 40 * time.Minute, renewal.Due},
		"at the end":                 {nil, time.Hour, renewal.Expired},
		"no token":                   {func(s *renewal.State, _ *renewal.Want) { s.Token = nil }, 0, renewal.Missing},
		"token without iat":          {func(s *renewal.State, _ *renewal.Want) { s.Token.IssuedAt = time.Time{} }, 0, renewal.Missing},
		"token without exp":          {func(s *renewal.State, _ *renewal.Want) { s.Token.Expiry = time.Time{} }, 0, renewal.Missing},
		"clock a minute behind":      {nil, -time.Minute, ""},
		"clock two minutes behind":   {nil, -2 * time.Minute, renewal.FromTheFuture},
		"key revoked":                {func(s *renewal.State, _ *renewal.Want) { s.Token.KeyID = "stolen" }, 0, renewal.Revoked},
		"unknown revocations":        {func(s *renewal.State, w *renewal.Want) { s.Token.KeyID, w.Revoked = "stolen", nil }, 0, ""},
		"identity created anew":      {func(_ *renewal.State, w *renewal.Want) { w.Subject = "sub2" }, 0, renewal.IdentityNew},
		"audiences changed":          {func(_ *renewal.State, w *renewal.Want) { w.Audiences = []string{"a"} }, 0, renewal.InputsChanged},
		"other inputs changed":       {func(_ *renewal.State, w *renewal.Want) { w.Digest = "other" }, 0, renewal.InputsChanged},
		"asked":                      {func(s *renewal.State, _ *renewal.Want) { s.Requested = true }, 0, renewal.Requested},
		"no timestamp":               {func(s *renewal.State, _ *renewal.Want) { s.RenewAt = "" }, 0, renewal.NoSchedule},
		"invalid timestamp":          {func(s *renewal.State, _ *renewal.Want) { s.RenewAt = "tomorrow" }, 0, renewal.NoSchedule},
		"timestamp before the token": {func(s *renewal.State, _ *renewal.Want) { s.RenewAt = issued.Add(-time.Second).Format(time.RFC3339) }, 0, renewal.NoSchedule},
		"timestamp after the token":  {func(s *renewal.State, _ *renewal.Want) { s.RenewAt = "2099-01-01T00:00:00Z" }, 0, renewal.NoSchedule},
	} {
		t.Run(name, func(t *testing.T) {
			state, want := held(), wanted()
			if test.change != nil {
				test.change(&state, &want)
			}
			got := renewal.Decide(state, want, issued.Add(test.after))
			if got.Reason != test.want || got.Renew() != (test.want != "") {
				t.Errorf("decided %+v, want reason %q", got, test.want)
			}
			if !got.Renew() && !got.At.Equal(issued.Add(40*time.Minute)) {
				t.Errorf("renews at %s, want the time of the annotation", got.At)
			}
		})
	}
}

func TestDigestChangesWithEveryInput(t *testing.T) {
	base := renewal.Inputs{UID: "u", Issuer: "i", Audiences: []string{"a", "b"}, Config: []byte("c"), Context: &v1alpha1.ContextObject{APIVersion: "v1", Kind: "K", Name: "n", UID: "x"}}
	seen := map[string]string{base.Digest(): "base"}
	for name, change := range map[string]func(*renewal.Inputs){
		"uid":       func(i *renewal.Inputs) { i.UID = "u2" },
		"issuer":    func(i *renewal.Inputs) { i.Issuer = "i2" },
		"audiences": func(i *renewal.Inputs) { i.Audiences = []string{"a,b"} },
		"order":     func(i *renewal.Inputs) { i.Audiences = []string{"b", "a"} },
		"config":    func(i *renewal.Inputs) { i.Config = nil },
		"context":   func(i *renewal.Inputs) { i.Context = nil },
		"its uid": func(i *renewal.Inputs) {
			i.Context = &v1alpha1.ContextObject{APIVersion: "v1", Kind: "K", Name: "n", UID: "y"}
		},
	} {
		changed := base
		change(&changed)
		if other, twice := seen[changed.Digest()]; twice {
			t.Errorf("inputs with another %s have the digest of %s", name, other)
		}
		seen[changed.Digest()] = name
	}
	if again := base; again.Digest() != base.Digest() {
		t.Error("the digest of the same inputs differs")
	}
}

func TestDraw(t *testing.T) {
	window := testkit.Need(renewal.Window{}.Complete())(t)
	for random, want := range map[float64]time.Duration{0: 36 * time.Minute, 0.5: 42 * time.Minute, 0.999999: 48*time.Minute - time.Second} {
		if got := window.Draw(issued, issued.Add(time.Hour), func() float64 { return random }).Sub(issued); got != want {
			t.Errorf("drew %s for %g, want %s", got, random, want)
		}
	}
	for _, wrong := range []renewal.Window{{From: 0.8, To: 0.6}, {From: 0.5, To: 0.5}, {From: 0.05, To: 0.8}, {From: 0.6, To: 1}} {
		if _, err := wrong.Complete(); err == nil {
			t.Errorf("the window %+v was accepted", wrong)
		}
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for _, failures := range []int{1, 2, 3, 9, 10, 1000} {
		got = append(got, renewal.Backoff(failures, func() float64 { return 0 }), renewal.Backoff(failures, func() float64 { return 1 }))
	}
	want := []time.Duration{
		500 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 2 * time.Second, 4 * time.Second,
		128 * time.Second, 256 * time.Second, 150 * time.Second, 300 * time.Second, 150 * time.Second, 300 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestSpread(t *testing.T) {
	if got := renewal.Spread(1, 2); got != 10*time.Millisecond {
		t.Errorf("the second of two goes on after %s, want 10ms", got)
	}
	last := renewal.Spread(9999, 10000)
	if last >= time.Minute || last < 59*time.Second {
		t.Errorf("the last of 10000 goes on after %s, want just below a minute", last)
	}
}
