package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// shipped is a file of the repository.
func shipped(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// applied applies manifests until the test ends, each once the kinds that the one before defines are there.
func (p plane) applied(t *testing.T, manifests ...string) {
	t.Helper()
	for _, manifest := range manifests {
		p.must(t, manifest, "kubectl", "apply", "-f", "-")
		t.Cleanup(func() { p.must(t, manifest, "kubectl", "delete", "--ignore-not-found", "-f", "-") })
		if strings.Contains(manifest, "kind: CustomResourceDefinition") {
			p.must(t, manifest, "kubectl", "wait", "--for=condition=Established", "--timeout=5m", "-f", "-")
		}
	}
}
