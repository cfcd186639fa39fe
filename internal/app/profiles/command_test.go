package profiles

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

func kubeconfigOf(server string) string {
	return `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}], "contexts": [{"name": "a", "context": {"cluster": "c"}}]}`
}

// Settings that can't work are refused before the cluster is called, and the error names the flag.
func TestCommandRefusesWhatCannotWork(t *testing.T) {
	kubeconfig := write(t, kubeconfigOf("http://127.0.0.1:1"))
	for name, test := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"a bad address":    {[]string{"--bind-address", "here"}, "--bind-address", true},
		"a bad period":     {[]string{"--drift-interval", "-1s"}, "--drift-interval", true},
		"no cluster":       {nil, "--kubeconfig is missing", true},
		"no kubeconfig":    {[]string{"--kubeconfig", kubeconfig + ".missing"}, "--kubeconfig", false},
		"no name":          {[]string{"--kubeconfig", kubeconfig}, "or set --cluster-name", false},
		"a bad template":   {[]string{"--kubeconfig", kubeconfig, "--cluster-name", "c", "--username-template", "{name}"}, "--username-template, --cluster-name: ", true},
		"no other cluster": {[]string{"--kubeconfig", kubeconfig, "--cluster-name", "c", "--identity-kubeconfig", kubeconfig + ".missing"}, "--identity-kubeconfig", false},
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
