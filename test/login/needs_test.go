package login_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// missing skips a test that needs what is not here. With CI set, it fails instead if the program can be installed.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("needs %s, and nothing that can be installed is skipped in CI: run test/login/programs.sh", what)
	}
	t.Skipf("needs %s: run test/login/programs.sh", what)
}

// needPrograms skips a test without what programs.sh installs.
func needPrograms(t *testing.T) {
	t.Helper()
	wanted := testkit.Need(os.ReadFile("testdata/package-lock.json"))(t)
	if installed, err := os.ReadFile("testdata/node_modules/.installed"); err != nil || string(installed) != string(wanted) {
		missing(t, "a certified OpenID provider")
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "Node.js")
	}
	if chromium() == "" {
		missing(t, "Chromium")
	}
}

// chromium returns the path of the browser, or "".
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// needBuild skips a test without the programs of make build.
func needBuild(t *testing.T) {
	t.Helper()
	for _, name := range []string{"credence", "credence-credential", "credence-devcluster", "kubectl"} {
		if _, err := os.Stat(controlplane.Program(name)); err != nil {
			t.Fatalf("needs %s: run make build, or name its folder in CREDENCE_BIN", name)
		}
	}
}
