//go:build unix

package up

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The last line of a completion is its directive: 4 keeps the shell from proposing files, 0 lets it where no word matches.
func TestCompletions(t *testing.T) {
	for flag, want := range map[string]string{
		"--guard":       "restricted\nbaseline\n:0\n",
		"--guard-allow": ":0\n",
		"--storage":     "cluster\nembedded\n:4\n",
		"--delivery":    "secret\ncsi\n:4\n",
	} {
		var out bytes.Buffer
		root := &cobra.Command{Use: "credence"}
		root.AddCommand(NewCommands(genericiooptions.IOStreams{})...)
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs([]string{cobra.ShellCompRequestCmd, "up", "--node", flag, ""})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flag, diff)
		}
	}
}
