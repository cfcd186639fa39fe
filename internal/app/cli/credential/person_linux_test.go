package credential

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

const pageToOpen = "https://login.example.com/x?y=z&a=$(id)&b=%s"

// putProgram makes a program that reports how it was called, and returns what waits for that report.
func putProgram(t *testing.T, name string) func() string {
	t.Helper()
	folder := t.TempDir()
	done := filepath.Join(folder, "done")
	testkit.Must(t, syscall.Mkfifo(done, 0o600))
	script := "#!/bin/sh\necho spoiled\necho spoiled >&2\nprintf '%s|' \"$@\" \"BROWSER=$BROWSER\" > '" + done + "'\n"
	testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return func() string {
		// The pipe waits for the script to open it.
		report, err := os.ReadFile(done)
		testkit.Expect(t, err)
		return string(report)
	}
}

// The output of the program that opens pages never gets into the answer for the client. Nor is the program that BROWSER names run, which xdg-open
// does where it finds nothing better: the kubeconfig of a client can set that variable.
func TestBrowserGetsNoneOfOurOutput(t *testing.T) {
	report := putProgram(t, "xdg-open")
	t.Setenv("DISPLAY", ":0")
	t.Setenv("BROWSER", "touch /tmp/x")
	for _, variable := range []string{"SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"} {
		t.Setenv(variable, "")
	}
	reader, writer, err := os.Pipe()
	testkit.Must(t, err)
	out, errOut := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = writer, writer
	err = person{}.OpenURL(pageToOpen)
	os.Stdout, os.Stderr = out, errOut
	testkit.Must(t, err)
	if got, want := report(), pageToOpen+"|BROWSER=|"; got != want {
		t.Errorf("called with %q, want %q", got, want)
	}
	testkit.Must(t, writer.Close())
	if written, err := io.ReadAll(reader); err != nil || len(written) > 0 {
		t.Errorf("the browser wrote %q, %v", written, err)
	}
}

func TestBrowserOfThePerson(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder")
	report := putProgram(t, "own-browser")
	testkit.Must(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "own browser")
	testkit.Must(t, os.WriteFile(path, []byte("#!/bin/sh\nexec own-browser in-a-folder \"$@\"\n"), 0o700))
	t.Setenv("BROWSER", "")
	for name, test := range map[string]struct {
		commands []string
		want     string
	}{
		"at the end":       {[]string{"own-browser"}, pageToOpen},
		"with arguments":   {[]string{" own-browser  --new-window "}, "--new-window|" + pageToOpen},
		"in its place":     {[]string{"own-browser --url=%s --private"}, "--url=" + pageToOpen + "|--private"},
		"no shell":         {[]string{"own-browser $(id) ; x"}, "$(id)|;|x|" + pageToOpen},
		"path with spaces": {[]string{path}, "in-a-folder|" + pageToOpen},
		"second":           {[]string{"not-installed", "own-browser"}, pageToOpen},
	} {
		if err := (person{browser: test.commands}).OpenURL(pageToOpen); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := report(); got != test.want+"|BROWSER=|" {
			t.Errorf("%s: called with %q, want %q", name, got, test.want)
		}
	}
	if err := (person{browser: []string{"not-installed"}}).OpenURL(pageToOpen); err == nil || !strings.Contains(err.Error(), "not-installed") {
		t.Errorf("not installed: %v", err)
	}
}

// The variables and the arguments of what a client starts are those of a kubeconfig, whose author must not choose which program runs.
func TestWhoChoosesTheBrowser(t *testing.T) {
	for name, test := range map[string]struct {
		variable, client string
		flag             []string
		want, problem    string
	}{
		"none":               {},
		"variable":           {variable: "firefox", want: "firefox"},
		"several":            {variable: ":firefox -P work::chromium %s: ", want: "firefox -P work,chromium %s"},
		"flag":               {variable: "firefox", flag: []string{"--browser-command", "chromium:x"}, want: "chromium:x"},
		"empty flag":         {flag: []string{"--browser-command", " "}, problem: "is empty"},
		"variable, a client": {variable: "firefox", client: "{}"},
		"flag, a client":     {flag: []string{"--browser-command", "chromium"}, client: "x", problem: "must not choose"},
	} {
		cmd := &cobra.Command{}
		addBrowserFlag(cmd.Flags())
		testkit.Must(t, cmd.ParseFlags(test.flag))
		environment := map[string]string{"BROWSER": test.variable, credential.EnvironmentVariable: test.client}
		got, err := browsers(cmd, func(name string) string { return environment[name] })
		if test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) || test.problem == "" && err != nil || strings.Join(got, ",") != test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
