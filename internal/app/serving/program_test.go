package serving

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitCodes(t *testing.T) {
	for arguments, want := range map[string]struct {
		code int
		text string
	}{
		"serve":              {0, ""},
		"serve --version":    {0, "server "},
		"--version":          {0, "server "},
		"serve --port 99999": {2, "server: --port 99999 is not a port\nhint: see server serve --help\n"},
		"serve --port x":     {2, `invalid argument "x"`},
		"serve --no-flag":    {2, "unknown flag: --no-flag\nhint: see server serve --help\n"},
		"serve more":         {2, "hint: see server serve --help\n"},
		"other":              {2, `unknown command "other"`},
		"serve --port 1":     {1, "server: the port is taken\n"},
	} {
		var port int
		root := &cobra.Command{Use: "server"}
		serve := &cobra.Command{Use: "serve", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			switch port {
			case 99999:
				return Usage(errors.New("--port 99999 is not a port"))
			case 1:
				return errors.New("the port is taken")
			}
			return nil
		}}
		serve.Flags().IntVar(&port, "port", 0, "")
		root.AddCommand(serve)
		var text bytes.Buffer
		root.SetOut(&text)
		root.SetErr(&text)
		root.SetArgs(strings.Fields(arguments))
		if code := run(t.Context(), root); code != want.code || !strings.Contains(text.String(), want.text) {
			t.Errorf("%s: exit code %d and %q, want %d with %q", arguments, code, text.String(), want.code, want.text)
		}
	}
}
