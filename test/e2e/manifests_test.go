package e2e_test

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// shipped is a file of the repository.
func shipped(t *testing.T, file string) string {
	t.Helper()
	return string(need(os.ReadFile("../../" + file))(t))
}

// applied applies manifests until the test ends, each once the kinds that the one before defines are there.
func (p plane) applied(t *testing.T, manifests ...string) {
	t.Helper()
	for _, manifest := range manifests {
		p.must(t, manifest, "kubectl", "apply", "-f", "-")
		t.Cleanup(func() { p.must(t, manifest, "kubectl", "delete", "--ignore-not-found", "-f", "-") })
		if strings.Contains(manifest, "kind: CustomResourceDefinition") {
			p.served(t, manifest)
		}
	}
}

// served waits until the API server serves the resources of definitions.
func (p plane) served(t *testing.T, definitions string) {
	t.Helper()
	names := strings.Fields(strings.ReplaceAll(p.must(t, definitions, "kubectl", "get", "-o", "name", "-f", "-"), "customresourcedefinition.apiextensions.k8s.io/", ""))
	eventually(t, func() error {
		if _, stderr, code := p.command(t, "", "kubectl", "get", "-A", strings.Join(names, ",")); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
}
