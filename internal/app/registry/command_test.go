package registry

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/test/testkit"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const registries = "registries:\n- {images: registry.example.com, audiences: [registry], exchange: token-server}\n"

// Settings that can't work are refused before the cluster is called, and the error names the flag.
func TestCommandRefusesWhatCannotWork(t *testing.T) {
	good := write(t, registries)
	for name, test := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"no registries":  {[]string{"--registries", good + ".missing"}, "--registries: ", true},
		"bad registries": {[]string{"--registries", write(t, "registries: 5")}, "--registries: ", true},
		"a bad window":   {[]string{"--registries", good, "--renew-from", "0.9", "--renew-to", "0.5"}, "--renew-from, --renew-to: ", true},
		"a bad address":  {[]string{"--registries", good, "--bind-address", "here"}, "--bind-address", true},
		"no cluster":     {[]string{"--registries", good}, "--kubeconfig is missing", true},
		"no kubeconfig":  {[]string{"--registries", good, "--kubeconfig", good + ".missing"}, "--kubeconfig", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			command := NewCommand()
			command.SetErr(io.Discard)
			command.SetOut(io.Discard)
			command.SetArgs(test.args)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if _, usage := errors.AsType[*serving.UsageError](err); usage != test.usage {
				t.Errorf("%v: an error of usage is %v, want %v", err, usage, test.usage)
			}
		})
	}
}
