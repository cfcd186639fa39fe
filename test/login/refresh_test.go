package login_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A person who has logged in stays so without a browser: tokens that end are replaced by refresh tokens, each used once, by one kubectl for
// all; and what happens to the provider does not require another login.
func TestKubectlStaysLoggedIn(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	d.wantAlice()
	for round := 1; round <= 3; round++ {
		d.age(10 * time.Minute)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got := d.whoami(); got.code != 0 || got.out != alice || strings.Contains(got.err, opening) {
					t.Errorf("kubectl at the end of a token: %s", got)
				}
			})
		}
		all.Wait()
		if n := d.provider.since(t, before, "refresh_token"); n != round {
			t.Errorf("%d refreshes after %d times that the token had ended", n, round)
		}
	}

	// The provider is unreachable: what ended has ended, and no browser opens for that.
	d.age(10 * time.Minute)
	d.provider.isDown(t, true)
	if got := d.whoami(); got.code == 0 || !strings.Contains(got.err, "connection refused") || strings.Contains(got.err, opening) {
		t.Errorf("kubectl without the provider: %s", got)
	}
	if now := d.kept(); now.State != "failed" || now.LastFailure.Class != "outage" || !now.Renewable {
		t.Errorf("in the outage the status is %+v", now)
	}
	d.provider.isDown(t, false)
	d.wantAlice()
	if n := d.provider.since(t, before, "refresh_token"); n != 4 {
		t.Errorf("%d refreshes in all, want 4", n)
	}
	if n := d.provider.since(t, before, "refused refresh_token"); n != 0 {
		t.Errorf("%d refresh tokens were used twice", n)
	}
	d.wantLogins(before, 1)
}

// The same with tokens that really end, after a minute.
func TestKubectlWithBriefTokens(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("brief")
	d.wantAlice()
	kept := d.kept()
	waitUntil(t, kept.Obtained.Add(kept.Expires.Sub(kept.Obtained)/2)) // such short ones are replaced after half of their time
	if got := d.wantAlice(); strings.Contains(got.err, opening) {
		t.Errorf("kubectl prints %q", got.err)
	}
	if n := d.provider.since(t, before, "refresh_token"); n == 0 {
		t.Error("the token that ends was not replaced")
	}
	d.wantLogins(before, 1)
}

// A token that is valid is served while the provider is unreachable; a person without one gets an error, and no browser opens for it.
func TestKubectlWithoutTheProvider(t *testing.T) {
	d, stranger := newWorkstation(t, "agree"), newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	stranger.entry("kubernetes")
	d.wantAlice()
	d.provider.isDown(t, true)
	d.wantAlice()
	if got := stranger.whoami(); got.code == 0 || !strings.Contains(got.err, "connection refused") || strings.Contains(got.err, opening) {
		t.Errorf("kubectl of a person who has not logged in: %s", got)
	}
	d.provider.isDown(t, false)
	d.wantLogins(before, 1)
	if n := stranger.pages(); n != 0 {
		t.Errorf("%d pages were opened in the outage", n)
	}
	stranger.wantAlice()
}
