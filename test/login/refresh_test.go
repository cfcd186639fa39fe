package login_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// kept is what credence credential status says of the one credential that is kept.
type kept struct {
	State             string
	Obtained, Expires time.Time
	Renewable         bool
	LastFailure       struct{ Class string }
}

func (d *desk) kept() kept {
	d.t.Helper()
	var status struct{ Credentials []kept }
	text := d.must("credence", "credential", "status", "-o", "json")
	if err := json.Unmarshal([]byte(text), &status); err != nil || len(status.Credentials) != 1 {
		d.t.Fatalf("credence credential status: %v\n%s", err, text)
	}
	return status.Credentials[0]
}

// waitUntil waits for a time that a program has named.
func waitUntil(t *testing.T, when time.Time) {
	t.Helper()
	waitFor(t, func() error {
		if left := time.Until(when); left > 0 {
			return fmt.Errorf("it is %s too early", left)
		}
		return nil
	})
}

// age makes what is kept older, as if so much time had passed since it was got.
func (d *desk) age(by time.Duration) {
	d.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.home, "cache", "credence", "credentials", "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	aged := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			d.t.Fatal(err)
		}
		// The first line ends with the digest of the rest.
		first, body, _ := bytes.Cut(content, []byte("\n"))
		heading, _, isEntry := bytes.Cut(first, []byte("sha256:"))
		if !isEntry {
			continue
		}
		var entry map[string]any
		if err := json.Unmarshal(body, &entry); err != nil {
			d.t.Fatal(err)
		}
		for _, field := range []string{"obtained", "expires"} {
			at, err := time.Parse(time.RFC3339, entry[field].(string))
			if err != nil {
				d.t.Fatal(err)
			}
			entry[field] = at.Add(-by).Format(time.RFC3339Nano)
		}
		if body, err = json.Marshal(entry); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, "%ssha256:%x\n%s", heading, sha256.Sum256(body), body), 0o600); err != nil {
			d.t.Fatal(err)
		}
		aged++
	}
	if aged != 1 {
		d.t.Fatalf("%d credentials are kept, want 1", aged)
	}
}

// Who has logged in stays so without a browser: tokens that end are replaced by refresh tokens, each used once, by one kubectl for
// all; and what happens to the provider is no reason to log in again.
func TestKubectlStaysLoggedIn(t *testing.T) {
	d := newDesk(t, "agree")
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

	// Nobody can reach the provider: what ended has ended, and no browser opens for that.
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

// The same with tokens that really end, after some seconds.
func TestKubectlWithBriefTokens(t *testing.T) {
	d := newDesk(t, "agree")
	before := d.provider.count(t)
	d.entry("brief")
	d.wantAlice()
	kept := d.kept()
	waitUntil(t, kept.Obtained.Add(kept.Expires.Sub(kept.Obtained)/2)) // such short ones are replaced after half of their time
	if got := d.wantAlice(); strings.Contains(got.err, opening) {
		t.Errorf("kubectl says %q", got.err)
	}
	if n := d.provider.since(t, before, "refresh_token"); n == 0 {
		t.Error("the token that ends was not replaced")
	}
	d.wantLogins(before, 1)
}

// A token that is valid is served while nobody can reach the provider; who has none is told so, and no browser opens for it.
func TestKubectlWithoutTheProvider(t *testing.T) {
	d, stranger := newDesk(t, "agree"), newDesk(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	stranger.entry("kubernetes")
	d.wantAlice()
	d.provider.isDown(t, true)
	d.wantAlice()
	if got := stranger.whoami(); got.code == 0 || !strings.Contains(got.err, "connection refused") || strings.Contains(got.err, opening) {
		t.Errorf("kubectl of somebody who has not logged in: %s", got)
	}
	d.provider.isDown(t, false)
	d.wantLogins(before, 1)
	if n := stranger.pages(); n != 0 {
		t.Errorf("%d pages were opened in the outage", n)
	}
	stranger.wantAlice()
}

// number is that of a token of the provider.
func number(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	var claims struct{ Number string }
	err := errors.New("it has no payload")
	if len(parts) == 3 {
		var payload []byte
		if payload, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			err = json.Unmarshal(payload, &claims)
		}
	}
	if err != nil || claims.Number == "" {
		t.Fatalf("the token has no number: %v", err)
	}
	return claims.Number
}

// token is what the person's clients are served.
func (d *desk) token(client string) string {
	d.t.Helper()
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(d.must("credence-credential", d.login(client)...)), &answer); err != nil {
		d.t.Fatal(err)
	}
	return answer.Status.Token
}

// A token that the API server refuses is replaced, without a browser: the kubectl that learns of it may fail, the next does not.
func TestKubectlGetsAnotherTokenForOneThatIsRefused(t *testing.T) {
	d := newDesk(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	d.must("credence", append([]string{"login"}, d.login("kubernetes")...)...)
	refused := d.token("kubernetes")
	d.cluster.refuse(t, number(t, refused))

	if got := d.whoami(); got.code == 0 || !strings.Contains(got.err, "Unauthorized") {
		t.Errorf("kubectl with a token that is refused: %s", got)
	}
	d.wantAlice()
	if d.token("kubernetes") == refused {
		t.Error("the token that was refused is still served")
	}
	if n := d.provider.since(t, before, "refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	d.wantLogins(before, 1)
}
