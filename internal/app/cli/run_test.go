package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

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
