package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/relyingparty"
)

func TestReadTokenNeverCutsOne(t *testing.T) {
	longest := strings.Repeat("a", relyingparty.MaxTokenLength)
	for in, want := range map[string]string{
		" \n token \r\n":          "token",
		longest + "\r\n":          longest,
		longest + "\r\n and more": longest + "\r\n ",
		longest + longest:         longest + "aaa",
	} {
		terminal := newTerminal(genericiooptions.IOStreams{In: strings.NewReader(in)}, Options{})
		got, err := terminal.readToken("-")
		if err != nil || got != want {
			t.Errorf("of %d bytes %d were read, want %d (%v)", len(in), len(got), len(want), err)
		}
	}
	terminal := newTerminal(genericiooptions.IOStreams{In: iotest.ErrReader(errors.New("broken pipe"))}, Options{})
	if _, err := terminal.readToken("-"); exitCode(err) != exitUsage {
		t.Errorf("error %v", err)
	}
}

type codeError int

func (codeError) Error() string   { return "own code" }
func (c codeError) ExitCode() int { return int(c) }

func TestRunMapsErrorsOfAddedCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  error
		code int
		want string
	}{
		"done":            {args: []string{"extra"}},
		"plain error":     {args: []string{"extra"}, err: errors.New("port 1 is busy"), code: 1, want: "error: port 1 is busy\n"},
		"own exit code":   {args: []string{"extra"}, err: fmt.Errorf("extra: %w", codeError(7)), code: 7, want: "error: extra: own code\n"},
		"wrong arguments": {args: []string{"extra", "x"}, code: 2, want: "error: unknown command \"x\" for \"credence extra\"\nhint: see credence extra --help\n"},
		"unknown flag":    {args: []string{"extra", "--x"}, code: 2, want: "error: unknown flag: --x\nhint: see credence extra --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &stderr}, Options{})
			root.AddCommand(&cobra.Command{Use: "extra", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return test.err }})
			if code := Run(t.Context(), root, test.args); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if diff := cmp.Diff(test.want, stderr.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNoteOnWaitingIsStopped(t *testing.T) {
	var waited time.Duration
	stopped := false
	var stderr bytes.Buffer
	terminal := newTerminal(genericiooptions.IOStreams{ErrOut: &stderr}, Options{After: func(d time.Duration, _ func()) func() bool {
		waited = d
		return func() bool { stopped = true; return true }
	}})
	terminal.waitingFor("something")()
	if waited != 2*time.Second || !stopped || stderr.Len() > 0 {
		t.Errorf("after %s, stopped %v, noted %q", waited, stopped, stderr.String())
	}
}

func TestPluginName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/kubectl-credence": "kubectl credence", "kubectl-credence.exe": "kubectl credence",
		"kubectl-my_id-two": "kubectl my-id two", "/opt/kubectl-x/credence": "", "credence": "", "": "",
	} {
		if got, ok := pluginName(program); ok != (want != "") || ok && got != want {
			t.Errorf("%q is plugin %q (%v), want %q", program, got, ok, want)
		}
	}
}

func TestGuard(t *testing.T) {
	const part = "abcdefghijklmnopqrstuvwxyz"
	signature := strings.Repeat("s", 64)
	for in, want := range map[string]string{
		"a eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2ln, b\n":   "a [redacted], b\n",
		"cut eyJhbGciOiJFUzI1NiJ9.eyJhI":                "cut [redacted]",
		"encrypted eyJhbGciOiJkaXIifQ..aXY.dGV4dA.dGFn": "encrypted [redacted]",
		// Key IDs, alone and as the names of files.
		"key abceyJabcdefghijklmnopqrstuvwxyz-0123456789, eyJabcdefghijklmnopqrstuvwxyz-0123456789_ABC, -eyJabcdefghijklmnopqrstuvwxyz0123456789_AB.pem.": "key abceyJabcdefghijklmnopqrstuvwxyz-0123456789, eyJabcdefghijklmnopqrstuvwxyz-0123456789_ABC, -eyJabcdefghijklmnopqrstuvwxyz0123456789_AB.pem.",
		"unusual " + part + "." + part + "." + signature: "unusual [redacted]",
		"https://identity.example.com:8443/path.html\n":  "https://identity.example.com:8443/path.html\n",
		"colour \x1b[31m, \r and \u202e\U000e0041":       `colour \u001b[31m, \u000d and \u202e\U000e0041`,
		"not UTF-8 \xff": "not UTF-8 \ufffd",
	} {
		var out bytes.Buffer
		n, err := (&guard{to: &out}).Write([]byte(in))
		if err != nil || n != len(in) || out.String() != want {
			t.Errorf("%q became %q (%d, %v), want %q", in, out.String(), n, err, want)
		}
	}
}

func TestRefusalsArePrintable(t *testing.T) {
	var out bytes.Buffer
	result := relyingparty.Result{Findings: []relyingparty.Finding{{Reason: relyingparty.Malformed, Detail: "a\x1b[2Jb"}}}
	if err := printRefused(&out, result, errors.New("c\u009bd")); err != nil {
		t.Fatal(err)
	}
	want := "refused\nMalformed: a\\u001b[2Jb\nthe signature was not checked: c\\u009bd\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("error: eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2ln")
	f.Add("\x1b]0;title\x07 \u009b2J")
	f.Fuzz(func(t *testing.T, text string) {
		const token = "eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2lnbmF0dXJl"
		var out bytes.Buffer
		if _, err := (&guard{to: &out}).Write([]byte(text + token + text)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), token) {
			t.Errorf("a token passed: %q", out.String())
		}
		for _, r := range out.String() {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("control character %U passed", r)
			}
		}
	})
}

func FuzzParseContext(f *testing.F) {
	for _, seed := range []string{"serviceaccount/worker", "sa/", "SA/a/b", "pod/x", "/", "", "serviceaccount/../x", "serviceaccount/%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseContext(text)
		if err != nil {
			return
		}
		if got.name == "" || strings.ContainsAny(got.name, "/%") || got.name == "." || got.name == ".." {
			t.Errorf("name %q accepted", got.name)
		}
		if kind, _, _ := strings.Cut(text, "/"); !strings.EqualFold(kind+"/"+got.name, text) {
			t.Errorf("%q became %q", text, got.name)
		}
	})
}

// FuzzInspect holds the printing of tokens to the rule that nothing in them reaches a terminal as a control character.
func FuzzInspect(f *testing.F) {
	f.Add(`{"sub":"a"}`)
	f.Add("{\"sub\":\"\u009b31m\x7f\u202e\",\t\"x\":[1.0e5,null]\r\n}")
	f.Fuzz(func(t *testing.T, object string) {
		text, err := indented([]byte(object))
		if err != nil {
			return
		}
		for _, r := range text {
			if !unicode.IsPrint(r) && r != '\n' {
				t.Errorf("character %U passed", r)
			}
		}
		again, err := indented([]byte(text))
		if err != nil || again != text {
			t.Errorf("printed twice: %q, then %q (%v)", text, again, err)
		}
	})
}
