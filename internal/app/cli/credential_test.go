package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	provider "github.com/credence-id/credence/internal/app/credential"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
)

// The small program finds what the command line keeps by the same key, for each source and its flags.
func TestBothProgramsAgreeOnKeys(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "kubeconfig")
	text := `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://c"}}, {"name": "d", "cluster": {"server": "https://d"}}],
		"users": [{"name": "u", "user": {}}, {"name": "v", "user": {}}],
		"contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "n"}}, {"name": "b", "context": {"cluster": "d", "user": "v"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	info := credential.ExecInfo{APIVersion: credential.V1, FromClient: true, Cluster: &credential.Cluster{Server: "https://x", Config: []byte(
		`{"oidc": {"parameters": {"of": "cluster"}}, "workloadIdentity": {"duration": "20m"}, "clientCertificate": {"duration": "2h"}}`)}}
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, line := range []string{
		"workload-identity app", "workload-identity app -n other", "workload-identity --namespace=more app", "workload-identity app --context sa/x",
		"workload-identity app --kube-context b", "workload-identity app --kubeconfig " + file + " --kube-context b -n y",
		"oidc --issuer https://i.example.com --client-id c", "oidc --issuer=https://i.example.com --client-id=c --present access --ca-file /ca.pem",
		"oidc --issuer https://i.example.com --client-id d --scope b --scope a --parameter prompt=consent --parameter x= --port 1,2 --client-secret-file /s",
		"client-certificate --user-name jane", "client-certificate --user-name jane --context b --group z --group a,b --duration 2h --signer example.com/x",
		"client-certificate --user-name joe --usage 'client-auth' --usage client\u00a0auth --renew-before 1h",
		"token-exchange --endpoint https://e --subject-token-file /t", "token-exchange --endpoint https://e --subject-token-file /t --audience a --audience b,c --scope s --resource https://r --authentication basic --client-id c --client-secret-file /s --ca-file /c --requested-token-type x",
		"file --path /t",
	} {
		args := strings.Fields(line)
		small, err := keyOfSmall(args, info)
		big, bigErr := keyOfBig(t, args, info)
		if (err == nil) != (bigErr == nil) {
			t.Errorf("%s: %v, and %v", line, err, bigErr)
			continue
		}
		if diff := cmp.Diff(big, small); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
		kinds[args[0]] = err == nil || kinds[args[0]]
		if key := strings.Join(flat(small), "\n"); err == nil && args[0] != "file" {
			if seen[key] {
				t.Errorf("%s: the key of another line", line)
			}
			seen[key] = true
		}
	}
	for _, kind := range provider.Kinds() {
		if !kinds[kind.Name] {
			t.Errorf("no line of source %s works", kind.Name)
		}
	}
}

func flat(key map[string]string) []string {
	var words []string
	for name, value := range key {
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	return words
}

func keyOfSmall(args []string, info credential.ExecInfo) (map[string]string, error) {
	line, err := provider.ParseLine(args)
	if err != nil {
		return nil, err
	}
	chosen, err := line.Choose(provider.Here(time.Now), info)
	if err != nil {
		return nil, err
	}
	return chosen.Key(), nil
}

// keyOfBig runs the command line with a command of the same sources that prints their keys.
func keyOfBig(t *testing.T, args []string, info credential.ExecInfo) (map[string]string, error) {
	t.Helper()
	terminal := newTerminal(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, Options{})
	connection := newConnection()
	root := &cobra.Command{Use: "credence", SilenceErrors: true, SilenceUsage: true}
	connection.addFlags(root.PersistentFlags())
	root.PersistentPreRunE = connection.refuseWithoutEffect(root.PersistentFlags())
	var key map[string]string
	for _, kind := range provider.Kinds() {
		root.AddCommand(newSourceCommand(terminal, connection, kind, sourceUse{
			example: func(string) string { return "" },
			run: func(s *source, cmd *cobra.Command, args []string) error {
				chosen, err := s.choose(cmd, args, info)
				if err == nil {
					key = chosen.Key()
				}
				return err
			},
		}))
	}
	root.SetArgs(args)
	return key, root.ExecuteContext(t.Context())
}

// A person logs in once; both programs serve what came of it; a logout ends it at the provider.
func TestLogInByBrowser(t *testing.T) {
	now, err := time.Parse(time.RFC3339, scriptNow)
	if err != nil {
		t.Fatal(err)
	}
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
		root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: browser}, Options{Clock: func() time.Time { return now }})
		code = Run(t.Context(), root, args)
		browser.done.Wait()
		return code, stdout.String(), browser.text.String()
	}
	line := []string{"oidc", "--issuer", issuer.Issuer, "--client-id", oidctest.ClientID, "--ca-file", issuer.CAFile}

	if code, out, errOut := run(append([]string{"credential"}, line...)...); code != exitNeedsPerson || out != "" {
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
	if code != 0 || !strings.Contains(status, `"renewable": true`) || looksLikeToken.MatchString(status) {
		t.Errorf("status: exit code %d\n%s", code, status)
	}
	if code, out, errOut := run("logout", "--all"); code != 0 || !strings.HasPrefix(out, "Forgotten: ") {
		t.Errorf("logout: exit code %d, %q\n%s", code, out, errOut)
	}
	if issuer.Requests("/revoke") != 1 {
		t.Errorf("%d requests to revoke", issuer.Requests("/revoke"))
	}
	if code, _, _ := run(append([]string{"credential"}, line...)...); code != exitNeedsPerson {
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

func TestNoBrowserIsOpened(t *testing.T) {
	for name, test := range map[string]struct {
		system      string
		environment map[string]string
		opens       bool
	}{
		"no display":          {system: "linux"},
		"a display":           {system: "linux", environment: map[string]string{"DISPLAY": ":0"}, opens: true},
		"Wayland":             {system: "linux", environment: map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, opens: true},
		"SSH with a display":  {system: "linux", environment: map[string]string{"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "a 1 b 2"}},
		"macOS":               {system: "darwin", opens: true},
		"macOS over SSH":      {system: "darwin", environment: map[string]string{"SSH_TTY": "/dev/ttys0"}},
		"Windows":             {system: "windows", opens: true},
		"Windows over SSH":    {system: "windows", environment: map[string]string{"SSH_CLIENT": "a"}},
		"nothing of a server": {system: "freebsd"},
	} {
		if err := noBrowser(test.system, func(name string) string { return test.environment[name] }); (err == nil) != test.opens {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"", "file:///etc/passwd", "-x", "javascript:alert(1)", "https:", "calc.exe"} {
		if err := (person{browser: []string{"true"}}).OpenURL(address); err == nil {
			t.Errorf("%q is opened", address)
		}
	}
}
