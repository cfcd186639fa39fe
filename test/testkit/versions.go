package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Version returns a version of the repository's versions.env, such as v1.37.1 of KUBERNETES.
func Version(t testing.TB, name string) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "versions.env"))
	for err != nil && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
		content, err = os.ReadFile(filepath.Join(folder, "versions.env"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if version, found := strings.CutPrefix(line, name+"="); found {
			return strings.TrimSpace(version)
		}
	}
	t.Fatalf("versions.env has no %s", name)
	return ""
}
