package certificates

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

// run runs the command with a kubeconfig of a cluster that does not answer.
func run(t *testing.T, args ...string) error {
	t.Helper()
	command := NewCommand()
	command.SetErr(io.Discard)
	command.SetOut(io.Discard)
	command.SetArgs(args)
	return command.ExecuteContext(t.Context())
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const unreachable = `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "t"}}],
	"contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}`

// Settings that can't work are refused before the cluster is called, and the error names the flag.
func TestCommandRefusesWhatCannotWork(t *testing.T) {
	kubeconfig := write(t, "kubeconfig", unreachable)
	key := write(t, "key", "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n")
	for name, test := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"a bad address":        {[]string{"--kubeconfig", kubeconfig, "--bind-address", "here"}, "--bind-address", true},
		"no cluster":           {nil, "--kubeconfig is missing", true},
		"no kubeconfig":        {[]string{"--kubeconfig", kubeconfig + ".missing"}, "--kubeconfig", false},
		"authorities alone":    {[]string{"--kubeconfig", kubeconfig, "--ca-file", key}, "--ca-file is for --register-api", true},
		"no certificate":       {[]string{"--kubeconfig", kubeconfig, "--register-api", "--ca-file", key}, "has no certificate", false},
		"no authorities":       {[]string{"--kubeconfig", kubeconfig, "--register-api", "--ca-file", key + ".missing"}, "--ca-file: open", false},
		"port, no certificate": {[]string{"--kubeconfig", kubeconfig, "--register-api", "--ca-file", key, "--health-port", "8443"}, "--health-port needs --tls-cert-file", true},
		"an argument":          {[]string{"x"}, "unknown command", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := run(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if _, usage := errors.AsType[*serving.UsageError](err); usage != test.usage {
				t.Errorf("%v: an error of usage is %v, want %v", err, usage, test.usage)
			}
		})
	}
}
