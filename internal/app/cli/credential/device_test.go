package credential_test

import (
	"bytes"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/cli/clitest"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/wording"
)

var codeToEnter = regexp.MustCompile(`enter the code (\S+),`)

// device is a provider with a person who sees what this program writes, and does something about the code of a device.
type device struct {
	*oidctest.Provider
	t    *testing.T
	text bytes.Buffer
	does func(code string)
}

func startDevice(t *testing.T) *device {
	t.Helper()
	t.Setenv("SSH_TTY", "/dev/pts/0")
	t.Setenv("BROWSER", "")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "caches"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv(credential.EnvironmentVariable, "")
	d := &device{Provider: oidctest.Start(t, clitest.Now()), t: t}
	d.Behave(oidctest.Behavior{Device: everySecond})
	return d
}

func everySecond(answer map[string]any) { answer["interval"] = 1 }

func (d *device) Write(p []byte) (int, error) {
	d.text.Write(p)
	if code := codeToEnter.FindSubmatch(p); code != nil && d.does != nil {
		d.does(string(code[1]))
	}
	return len(p), nil
}

func (d *device) enter(code string) {
	if err := d.Browser(d.t, "jane").Enter(code); err != nil {
		d.t.Error(err)
	}
	d.Advance(10 * time.Second) // so that no poll comes too soon
}

func (d *device) run(args ...string) (code int, out, errOut string) {
	var stdout bytes.Buffer
	d.text.Reset()
	root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: d}, cli.Options{Clock: d.Now})
	code = cli.Run(d.t.Context(), root, args)
	return code, stdout.String(), d.text.String()
}

func (d *device) line(command string) []string {
	return []string{command, "oidc", "--issuer", d.Issuer, "--client-id", oidctest.ClientID, "--ca-file", d.CAFile}
}

// A person without a browser here enters a code elsewhere. The code is shown on standard error, and after a refusal there is nothing on
// standard output.
func TestLogInByDeviceCode(t *testing.T) {
	d := startDevice(t)
	d.does = d.enter
	code, out, errOut := d.run(append(d.line("login"), "--flow", "device")...)
	if code != 0 || !strings.HasPrefix(out, "Logged in until ") || !strings.Contains(errOut, "enter the code") {
		t.Fatalf("exit code %d, %q\n%s", code, out, errOut)
	}
	if code, out, errOut = d.run(d.line("credential")...); code != 0 || !strings.Contains(out, `"token":"eyJ`) || errOut != "" {
		t.Errorf("a client: exit code %d, %d bytes\n%s", code, len(out), errOut)
	}

	if code, _, errOut = d.run("logout", "--all"); code != 0 {
		t.Fatalf("logout: exit code %d\n%s", code, errOut)
	}

	d.Behave(oidctest.Behavior{Device: everySecond, Deny: true})
	if code, out, errOut = d.run(append(d.line("login"), "--flow", "device")...); code != command.ExitRefused || out != "" || !strings.Contains(errOut, "access_denied") {
		t.Errorf("denied: exit code %d, %q\n%s", code, out, errOut)
	}
	if wording.Redact(errOut) != errOut {
		t.Errorf("a token is shown:\n%s", errOut)
	}

	d.Behave(oidctest.Behavior{Device: everySecond})
	d.does = func(string) { d.Advance(time.Hour) } // the code is never entered
	if code, out, errOut = d.run(append(d.line("login"), "--flow", "device")...); code != command.ExitNeedsPerson || out != "" || !strings.Contains(errOut, "was not entered in time") {
		t.Errorf("no approval: exit code %d, %q\n%s", code, out, errOut)
	}

	d.Behave(oidctest.Behavior{Document: func(document map[string]any) { delete(document, "device_authorization_endpoint") }})
	if code, out, errOut = d.run(append(d.line("login"), "--flow", "device")...); code != command.ExitRefused || out != "" || !strings.Contains(errOut, "has no device codes") {
		t.Errorf("without codes: exit code %d, %q\n%s", code, out, errOut)
	}
}

// In a job of CI or cron, where the way to log in was not chosen either, a login fails before the first request. A credential that can be renewed
// without a person is renewed.
func TestLogInWithoutATerminal(t *testing.T) {
	d := startDevice(t)
	d.does = func(code string) { t.Errorf("the code %s is shown", code); d.Advance(time.Hour) }
	code, out, errOut := d.run(d.line("login")...)
	if code != command.ExitNeedsPerson || out != "" || !strings.Contains(errOut, "neither a terminal nor a display") ||
		!strings.Contains(errOut, "hint: in a terminal: credence login oidc ") || !strings.Contains(errOut, "add --flow=device") {
		t.Errorf("exit code %d, %q\n%s", code, out, errOut)
	}
	d.does = d.enter
	if code, _, errOut = d.run(append(d.line("login"), "--flow=device")...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	if code, out, errOut = d.run(d.line("login")...); code != 0 || !strings.HasPrefix(out, "Logged in until ") {
		t.Errorf("renewed: exit code %d, %q\n%s", code, out, errOut)
	}
	t.Setenv(credential.EnvironmentVariable, `{"apiVersion": "`+credential.V1+`"}`)
	if code, out, errOut = d.run(append(d.line("login"), "--browser-command", "true")...); code != command.ExitUsage || out != "" || !strings.Contains(errOut, "must not choose") {
		t.Errorf("by a client: exit code %d, %q\n%s", code, out, errOut)
	}
}

// A logout while the provider is down leaves nothing here, and reports that the provider still has the login, and what to do.
// Without a logout, an outage costs nothing of what is kept.
func TestProviderThatIsDown(t *testing.T) {
	d := startDevice(t)
	d.does = d.enter
	if code, _, errOut := d.run(append(d.line("login"), "--flow", "device")...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	down := oidctest.Behavior{Take: func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "gone fishing", http.StatusServiceUnavailable)
		return true
	}}
	d.Behave(down)
	d.Advance(time.Hour)
	code, out, errOut := d.run(d.line("credential")...)
	if code != command.ExitOutage || out != "" || !strings.Contains(errOut, "503") {
		t.Errorf("a client: exit code %d, %q\n%s", code, out, errOut)
	}
	if code, out, _ = d.run("credential", "status", "-o", "json"); code != 0 || !strings.Contains(out, `"renewable": true`) || !strings.Contains(out, `"class": "outage"`) {
		t.Errorf("status: exit code %d\n%s", code, out)
	}
	d.Behave(oidctest.Behavior{})
	if code, out, errOut = d.run(d.line("credential")...); code != 0 || !strings.Contains(out, `"token"`) {
		t.Errorf("after the outage: exit code %d\n%s", code, errOut)
	}
	d.Behave(down)
	code, out, errOut = d.run("logout", "--all")
	if code != command.ExitOutage || out != "" || !strings.Contains(errOut, "is forgotten here, but not revoked: ") || !strings.Contains(errOut, "hint: end the session at the provider itself") {
		t.Errorf("logout: exit code %d, %q\n%s", code, out, errOut)
	}
	if strings.Contains(errOut, "refresh-") {
		t.Errorf("a refresh token is shown:\n%s", errOut)
	}
	if code, out, _ = d.run("credential", "status"); code != 0 || !strings.HasPrefix(out, "Nothing is kept") {
		t.Errorf("status: exit code %d, %q", code, out)
	}
	if code, out, errOut = d.run("logout", "--all"); code != 0 || out != "Nothing is kept.\n" {
		t.Errorf("logout again: exit code %d, %q\n%s", code, out, errOut)
	}
}
