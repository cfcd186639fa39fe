package login_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// Documents have blocks that need a browser, and a person who logs in.
func TestDocumentsWithABrowser(t *testing.T) {
	commands := documents.Run(t, documents.All(t), "```console needs=browser", func(t *testing.T) documents.Reader {
		d := newWorkstation(t, "agree")
		return documents.Reader{
			Folder: map[string]string{
				"bin": filepath.Dir(controlplane.Program("credence")), "docs": filepath.Join(documents.Repository, "docs"), "test": filepath.Join(documents.Repository, "test"),
			},
			Environment: append(d.environment(), "GOCACHE="+goCache(t)),
			Terminal:    d.terminal,
			Screen:      &reading{person: &d.person},
		}
	})
	if commands == 0 {
		t.Error("no document has a command that needs a browser")
	}
}

// goCache is where Go keeps what it has compiled, which is not made anew in the home of the test.
func goCache(t *testing.T) string {
	t.Helper()
	path := testkit.Need(exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output())(t)
	return strings.TrimSpace(string(path))
}
