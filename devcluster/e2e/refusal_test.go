//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These faults are found once etcd runs. internal/command tests those that are found before.
func TestRefusesToStart(t *testing.T) {
	free := t.TempDir()

	refused(t, 2, "give one with --dir")
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown feature gate":   {[]string{"--dir", free, "--port", "0", "--feature-gates", "Nonsense=true"}, "unrecognized feature gate: Nonsense"},
		"an unknown component flag": {[]string{"--dir", free, "--port", "0", "--apiserver-arg=--nonsense"}, "unknown flag: --nonsense"},
		"no authentication config":  {[]string{"--dir", free, "--port", "0", "--authentication-config", "/nowhere"}, "/nowhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, 1, test.want, test.args...)
		})
	}
}

func TestRefusesWithANode(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), os.Getenv("DEVCLUSTER_BIN"), "check-node", "--dir", t.TempDir()).CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
	free := t.TempDir()
	long := filepath.Join(free, strings.Repeat("x", 100))
	refused(t, 1, "choose a shorter --dir", "--dir", long, "--port", "0", "--node")
}

// refused checks that the program ends with the exit code, and prints want in its last and only line.
func refused(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Getenv("DEVCLUSTER_BIN"), args...)
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("%v, want exit code %d", err, code)
	}
	if text := stderr.String(); !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
		t.Errorf("stderr:\n%s\nwant one line with %q", text, want)
	}
}
