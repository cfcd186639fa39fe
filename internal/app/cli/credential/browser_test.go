package credential_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/cli/clitest"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/wording"
)

// A person logs in once; both programs serve what came of it; a logout ends it at the provider.
func TestLogInByBrowser(t *testing.T) {
	now := clitest.Now()
	for _, variable := range []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} {
		t.Setenv(variable, "")
	}
	t.Setenv("SSH_TTY", "/dev/pts/0") // on every system
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "caches"))
	t.Setenv("HOME", t.TempDir())
	// Not by the protocol, by which a client that requests twice was refused.
	t.Setenv(credential.EnvironmentVariable, "")
	issuer := oidctest.Start(t, now)
	browser := &eager{open: func(address string) {
		if page, err := issuer.Browser(t, "jane").Open(address); err != nil || page.Status != 200 {
			t.Errorf("the browser ends with %d, %v", page.Status, err)
		}
	}}
	run := func(args ...string) (code int, out, errOut string) {
		var stdout bytes.Buffer
		browser.text.Reset()
		root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: browser}, cli.Options{Clock: func() time.Time { return now }})
		code = cli.Run(t.Context(), root, args)
		browser.done.Wait()
		return code, stdout.String(), browser.text.String()
	}
	line := []string{"oidc", "--issuer", issuer.Issuer, "--client-id", oidctest.ClientID, "--ca-file", issuer.CAFile}

	if code, out, errOut := run(append([]string{"credential"}, line...)...); code != command.ExitNeedsPerson || out != "" {
		t.Fatalf("before the login: exit code %d, %q\n%s", code, out, errOut)
	}
	if code, out, errOut := run(append(append([]string{"login"}, line...), "--flow", "browser")...); code != 0 || !strings.HasPrefix(out, "Logged in until ") {
		t.Fatalf("login: exit code %d, %q\n%s", code, out, errOut)
	}
	code, big, errOut := run(append([]string{"credential"}, line...)...)
	if code != 0 || !strings.Contains(big, `"token":"eyJ`) {
		t.Fatalf("after the login: exit code %d\n%s", code, errOut)
	}
	var small, smallErr bytes.Buffer
	if code := provider.Run(line, &small, &smallErr, func() time.Time { return now }); code != 0 || small.String() != big {
		t.Errorf("the small program: exit code %d, %d bytes\n%s", code, small.Len(), smallErr.String())
	}
	code, status, _ := run("credential", "status", "-o", "json")
	if code != 0 || !strings.Contains(status, `"renewable": true`) || wording.Redact(status) != status {
		t.Errorf("status: exit code %d\n%s", code, status)
	}
	// The secret of a client goes to no other provider, which a cluster may have named.
	if code, _, errOut := run("logout", "--all", "--client-secret-file", "secret"); code != command.ExitUsage || !strings.Contains(errOut, " of "+issuer.Issuer) || issuer.Requests("/revoke") != 0 {
		t.Errorf("logout with a secret: exit code %d, %d requests to revoke\n%s", code, issuer.Requests("/revoke"), errOut)
	}
	if code, out, errOut := run("logout", "--all"); code != 0 || !strings.HasPrefix(out, "Forgotten: ") {
		t.Errorf("logout: exit code %d, %q\n%s", code, out, errOut)
	}
	if issuer.Requests("/revoke") != 1 {
		t.Errorf("%d requests to revoke", issuer.Requests("/revoke"))
	}
	if code, _, _ := run(append([]string{"credential"}, line...)...); code != command.ExitNeedsPerson {
		t.Errorf("after the logout: exit code %d", code)
	}
}

var webAddress = regexp.MustCompile(`https://127\.0\.0\.1:[0-9]+/authorize\?\S+`)

// eager is a person who opens each address that is shown to log in.
type eager struct {
	text bytes.Buffer
	done sync.WaitGroup
	open func(string)
}

func (e *eager) Write(p []byte) (int, error) {
	if address := webAddress.FindString(string(p)); address != "" {
		e.done.Go(func() { e.open(address) })
	}
	return e.text.Write(p)
}
