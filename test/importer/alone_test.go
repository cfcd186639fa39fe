package importer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hack/alone.sh works in a checkout, and with a folder for temporary files, that have spaces in their paths.
func TestAloneInPathsWithSpaces(t *testing.T) {
	checkout := filepath.Join(t.TempDir(), "a check out")
	for _, file := range []string{"hack/alone.sh", "execcredential/go.mod", "execcredential/go.sum", "execcredential/clientgo/go.mod", "execcredential/clientgo/go.sum"} {
		content, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(checkout, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	temporary := filepath.Join(checkout, "its temporary files")
	if err := os.Mkdir(temporary, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = checkout
		command.Env = append(os.Environ(), "TMPDIR="+temporary, "GOFLAGS=-mod=mod")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("git", "init", "--quiet")
	listed := run(filepath.Join(checkout, "hack/alone.sh"), "execcredential/clientgo", "list", "-m", "github.com/credence-id/credence/execcredential")
	if !strings.Contains(listed, " => "+filepath.Join(checkout, "execcredential")) {
		t.Errorf("alone.sh uses %s", listed)
	}
}
