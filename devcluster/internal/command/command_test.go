//go:build linux

package command

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// called is one call of the program, which starts nothing.
func called(t *testing.T, arguments ...string) (stdout string, err error) {
	t.Helper()
	var out, log strings.Builder
	command := New(&out, &log)
	command.SetArgs(arguments)
	err = command.ExecuteContext(t.Context())
	if log.Len() > 0 {
		t.Errorf("%v log %q", arguments, log.String())
	}
	return out.String(), err
}

// A fault is found before anything runs, and is reported in one line.
func TestRefusals(t *testing.T) {
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
	for name, test := range map[string]struct {
		arguments []string
		want      string
		usage     bool
	}{
		"no directory":                {nil, "give one with --dir", true},
		"no directory of a node":      {[]string{"load-image", "a", "b"}, "give one with --dir", true},
		"an argument":                 {[]string{"--dir", "x", "start"}, `unknown command "start"`, true},
		"an unknown flag":             {[]string{"--nonsense"}, "unknown flag: --nonsense", true},
		"a directory it cannot write": {[]string{"--dir", file, "--port", "0"}, "cannot use directory " + file, false},
		"a busy port":                 {[]string{"--dir", t.TempDir(), "--port", port}, "port " + port + " of 127.0.0.1 is in use", false},
		"a busy second port":          {[]string{"--dir", t.TempDir(), "--port", "0", "--controller-manager-port", port}, "choose another port with --controller-manager-port", false},
		"a bad image name":            {[]string{"load-image", "--dir", t.TempDir(), "A B", "/bin/ls"}, "it must be such as credence:dev", false},
		"an image of no node":         {[]string{"load-image", "--dir", t.TempDir(), "a:1", "/bin/ls"}, "no node runs in ", false},
		"an archive for no node":      {[]string{"import-images", "--dir", t.TempDir(), file}, "no node runs in ", false},
		"a node's process by hand":    {[]string{"node", t.TempDir()}, "is started by credence-devcluster --node only", false},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, err := called(t, test.arguments...)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || stdout != "" {
				t.Errorf("%q, %v, want one line with %q", stdout, err, test.want)
			}
			if _, usage := errors.AsType[UsageError](err); usage != test.usage {
				t.Errorf("an error of usage: %t", usage)
			}
		})
	}
}

// Cleaning up has nothing to do where no node ran, and leaves a cluster that runs alone.
func TestCleanNode(t *testing.T) {
	dir := t.TempDir()
	if _, err := called(t, "clean-node", "--dir", dir); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	if out, err := called(t, "--version"); err != nil || !strings.Contains(out, "Kubernetes ") || !strings.Contains(out, ", etcd v") {
		t.Errorf("%q, %v", out, err)
	}
	out, err := called(t, "--help")
	if err != nil || !strings.Contains(out, "--shared-port") || strings.Contains(out, "--restart-apiserver") || strings.Contains(out, "check-node") {
		t.Errorf("%q, %v", out, err)
	}
}

// The words after a program are its own arguments, and flags of the processes that are this binary are not looked at.
func TestArgumentsOfOthers(t *testing.T) {
	load, rest, err := New(io.Discard, io.Discard).Find([]string{"load-image", "--dir", "d", "a:1", "/bin/x", "--dir", "other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := load.ParseFlags(rest); err != nil || strings.Join(load.Flags().Args(), " ") != "a:1 /bin/x --dir other" || load.Flag("dir").Value.String() != "d" {
		t.Errorf("arguments %q, --dir %s, %v", load.Flags().Args(), load.Flag("dir").Value, err)
	}
	for _, name := range []string{"kube-controller-manager", "kube-apiserver"} {
		if child, _, err := New(io.Discard, io.Discard).Find([]string{name}); err != nil || child.Name() != name || !child.Hidden || !child.DisableFlagParsing {
			t.Errorf("%s is not a hidden command with flags of its own: %v", name, err)
		}
	}
	var out strings.Builder
	if err := printImages(&out, "a:1", "b:2"); err != nil || out.String() != "a:1 is an image of the node: use it with imagePullPolicy: Never\nb:2 is an image of the node: use it with imagePullPolicy: Never\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
