package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// A chart with a binding and its identity is installed, upgraded and uninstalled by both versions of Helm, at the first try.
func TestHelmInstallsABindingWithItsIdentity(t *testing.T) {
	for _, program := range []string{"helm", "helm3"} {
		t.Run(program, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c cluster, namespace string) {
				chart := t.TempDir()
				testkit.Must(t, os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: shop\nversion: 1.0.0\n"), 0o600))
				testkit.Must(t, os.Mkdir(filepath.Join(chart, "templates"), 0o700))
				text := ""
				for _, object := range c.release(namespace) {
					text += "---\n" + string(testkit.Need(json.Marshal(object))(t)) + "\n"
				}
				testkit.Must(t, os.WriteFile(filepath.Join(chart, "templates", "all.yaml"), []byte(text), 0o600))
				c.command(t, program, "install", "shop", chart, "--namespace", namespace, "--wait", "--timeout", "5m")
				c.works(t, namespace)
				c.command(t, program, "upgrade", "shop", chart, "--namespace", namespace, "--wait", "--timeout", "5m")
				c.works(t, namespace)
				c.command(t, program, "uninstall", "shop", "--namespace", namespace) // with --wait, an identity to which a binding referred takes 90 seconds
			})
		})
	}
}
