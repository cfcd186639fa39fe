//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefusesToStart(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := fmt.Sprint(busy.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := t.TempDir()

	refused(t, 2, "give one with --dir")
	tests := map[string]struct {
		args []string
		want string
	}{
		"a directory it cannot write": {[]string{"--dir", file, "--port", "0"}, "cannot use directory " + file},
		"a busy port":                 {[]string{"--dir", free, "--port", port}, "port " + port + " of 127.0.0.1 is in use"},
		"a busy second port":          {[]string{"--dir", free, "--port", "0", "--controller-manager-port", port}, "choose another port with --controller-manager-port"},
		"an unknown feature gate":     {[]string{"--dir", free, "--port", "0", "--feature-gates", "Nonsense=true"}, "unrecognized feature gate: Nonsense"},
		"an unknown component flag":   {[]string{"--dir", free, "--port", "0", "--apiserver-arg=--nonsense"}, "unknown flag: --nonsense"},
		"a node's process by hand":    {[]string{"node", free}, "is started by credence-devcluster --node only"},
		"a bad image name":            {[]string{"load-image", "--dir", free, "A B", "/bin/ls"}, "it must be such as credence:dev"},
		"no authentication config":    {[]string{"--dir", free, "--port", "0", "--authentication-config", "/nowhere"}, "/nowhere"},
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
	refused(t, 1, "no node runs in "+free, "load-image", "--dir", free, "a:1", os.Getenv("DEVCLUSTER_BIN"))
	refused(t, 1, "no node runs in "+free, "import-images", "--dir", free, os.Getenv("DEVCLUSTER_BIN"))
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
