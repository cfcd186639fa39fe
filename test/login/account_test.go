package login_test

import (
	"strings"
	"testing"
)

// The commands about a login, and how it ends.
func TestAfterTheLogin(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	d.wantAlice()

	want := "User:   idp:alice\nGroups: idp:developers\n        system:authenticated\n"
	if got := d.must("credence", "whoami"); !strings.HasPrefix(got, want) || !strings.Contains(got, "Server: "+d.cluster.admin.Host) {
		t.Errorf("credence whoami prints %q", got)
	}
	status := d.must("credence", "credential", "status")
	if !strings.Contains(status, "kubernetes at "+d.provider.issuer+"  valid") {
		t.Errorf("credence credential status prints %q", status)
	}
	for _, text := range []string{status, d.must("credence", "credential", "status", "-o", "json")} {
		if strings.Contains(text, d.token("kubernetes")) {
			t.Error("the status shows the token")
		}
	}

	id := strings.Fields(strings.Split(status, "\n")[1])[0]
	if got := d.must("credence", "logout", id); !strings.HasPrefix(got, "Forgotten: "+id+" kubernetes at ") {
		t.Errorf("credence logout prints %q", got)
	}
	if n := d.provider.since(t, before, "revoked"); n != 1 {
		t.Errorf("the provider has revoked %d logins, want 1", n)
	}
	if got := d.must("credence", "credential", "status"); !strings.HasPrefix(got, "Nothing is kept in ") {
		t.Errorf("after the logout the status is %q", got)
	}
	// Without a terminal no person can be prompted, and the error has what to do.
	got := d.runWith(nil, "kubectl", "auth", "whoami")
	if got.code == 0 || !strings.Contains(got.err, "in a terminal: credence login oidc --") || !strings.Contains(got.err, "failed with exit code 4") {
		t.Errorf("kubectl without a terminal: %s", got)
	}
	if got := d.runWith(nil, "credence", "whoami"); got.code == 0 || !strings.Contains(got.err, "in a terminal: credence login oidc --") {
		t.Errorf("credence whoami without a terminal: %s", got)
	}
	d.wantLogins(before, 1)

	// With one it is a new login.
	d.wantAlice()
	d.wantLogins(before, 2)
}

// There is no browser here, as in a session over SSH: kubectl shows an address and a code for another device.
func TestKubectlLogsInByDeviceCode(t *testing.T) {
	d := newWorkstation(t, "agree")
	d.noDisplay = true
	before := d.provider.count(t)
	d.entry("kubernetes")
	got := d.wantAlice()
	if strings.Count(got.err, "on any device and enter the code") != 1 || strings.Contains(got.err, opening) {
		t.Errorf("kubectl prints %q", got.err)
	}
	if page := d.page(); !strings.Contains(page.Text, "Sign-in Success") {
		t.Errorf("the browser shows %q", page.Text)
	}
	if n := d.provider.since(t, before, "device"); n != 1 {
		t.Errorf("%d device codes, want 1", n)
	}
	d.wantLogins(before, 0)
	d.wantAlice()
	if n := d.provider.since(t, before, "device_code"); n != 1 {
		t.Errorf("%d logins by device code, want 1", n)
	}
}
