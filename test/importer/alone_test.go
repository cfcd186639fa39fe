package importer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// hack/alone.sh works in a checkout, and with a folder for temporary files, that have spaces in their paths.
func TestAloneInPathsWithSpaces(t *testing.T) {
	checkout := filepath.Join(t.TempDir(), "a check out")
	for _, file := range []string{"hack/alone.sh", "execcredential/go.mod", "execcredential/go.sum", "execcredential/clientgo/go.mod", "execcredential/clientgo/go.sum"} {
		content := testkit.Need(os.ReadFile(filepath.Join("../..", file)))(t)
		at := filepath.Join(checkout, file)
		testkit.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		testkit.Must(t, os.WriteFile(at, content, 0o755))
	}
	temporary := filepath.Join(checkout, "its temporary files")
	testkit.Must(t, os.Mkdir(temporary, 0o755))
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
