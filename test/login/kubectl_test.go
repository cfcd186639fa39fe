package login_test

import (
	"strings"
	"sync"
	"testing"
)

// entry writes the user of the kubeconfig, whose credentials come from the provider.
func (d *workstation) entry(client string, more ...string) {
	d.t.Helper()
	args := append([]string{"kubeconfig"}, d.login(client, more...)...)
	if got := d.must("credence", append(args, "--entry", "me", "--file", d.kubeconfig, "--for-context", "work", "--replace")...); !strings.HasPrefix(got, "Written: user me") {
		d.t.Fatalf("credence kubeconfig prints %q", got)
	}
}

// login are the words that name the credential.
func (d *workstation) login(client string, more ...string) []string {
	return append([]string{"oidc", "--issuer", d.provider.issuer, "--client-id", client, "--ca-file", d.provider.caFile, "--parameter", "prompt=consent"}, more...)
}

// whoami runs stock kubectl auth whoami for the person.
func (d *workstation) whoami() outcome {
	d.t.Helper()
	return d.run("kubectl", "auth", "whoami", "-o", `jsonpath={.status.userInfo.username} {.status.userInfo.groups}`)
}

const alice = `idp:alice ["idp:developers","system:authenticated"]`

func (d *workstation) wantAlice() outcome {
	d.t.Helper()
	got := d.whoami()
	if got.code != 0 || got.out != alice {
		d.t.Fatalf("kubectl auth whoami: %s", got)
	}
	return got
}

// opening is what a person reads who is to log in by a browser.
const opening = "in the browser that opens"

// wantLogins checks how often a person was prompted since before.
func (d *workstation) wantLogins(before counts, want int) {
	d.t.Helper()
	if pages, asked := d.pages(), d.provider.since(d.t, before, "authorization"); pages != want || asked != want {
		d.t.Errorf("%d pages were opened, and the provider got %d requests for logins, want %d", pages, asked, want)
	}
}

// Eight kubectl at once, by a person who has not logged in yet: one login, and all of them go on as that person.
func TestKubectlLogsIn(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	var all sync.WaitGroup
	got := make([]outcome, 8)
	for i := range got {
		all.Go(func() { got[i] = d.whoami() })
	}
	all.Wait()
	opened := 0
	for i, one := range got {
		if one.code != 0 || one.out != alice {
			t.Errorf("kubectl %d: %s", i, one)
		}
		opened += strings.Count(one.err, opening)
	}
	if opened != 1 {
		t.Errorf("%d of them print that a browser opens", opened)
	}
	d.wantLogins(before, 1)
	if page := d.page(); !strings.Contains(page.Text, "You are logged in") {
		t.Errorf("the browser shows %q", page.Text)
	}

	// A kept credential is served without the provider.
	asked := d.provider.count(t)
	if got := d.wantAlice(); got.err != "" {
		t.Errorf("the second time kubectl prints %q", got.err)
	}
	if n := d.provider.since(t, asked, "request"); n != 0 {
		t.Errorf("for a kept credential the provider got %d requests", n)
	}
	d.wantLogins(before, 1)
}

// A refusal holds for the client: kubectl runs its provider again and again, and the person is prompted once.
func TestKubectlIsRefused(t *testing.T) {
	d := newWorkstation(t, "refuse")
	before := d.provider.count(t)
	d.entry("kubernetes")
	got := d.run("kubectl", "get", "namespaces")
	if got.code == 0 || got.out != "" || !strings.Contains(got.err, "access_denied") || strings.Count(got.err, opening) != 1 {
		t.Errorf("kubectl get namespaces: %s", got)
	}
	if runs := strings.Count(got.err, "failed with exit code"); runs < 2 {
		t.Errorf("kubectl has run its provider %d times: nothing is shown", runs)
	}
	d.wantLogins(before, 1)
	if page := d.page(); !strings.Contains(page.Text, "You are not logged in") {
		t.Errorf("the browser shows %q", page.Text)
	}
}
