package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// Argo CD's cache of a cluster lists and watches every kind. Its first sync of an application with a binding and its identity succeeds, and then
// and after a second one it finds no difference.
func TestArgoCDSyncsABindingWithItsIdentity(t *testing.T) {
	onBoth(t, func(t *testing.T, c cluster, namespace string) {
		objects := testkit.Need(json.Marshal(c.release(namespace)))(t)
		for range 2 {
			command := exec.CommandContext(t.Context(), controlplane.Program("argocd"), c.kubeconfig, namespace, namespace)
			command.Stdin = bytes.NewReader(objects)
			out, err := command.CombinedOutput()
			printed := string(out)
			cached := 0
			if _, scanned := fmt.Sscanf(printed, "cached %d", &cached); err != nil || scanned != nil || cached < 100 || strings.Contains(printed, "\ndiffers ") {
				t.Fatalf("%v, %v\n%s", err, scanned, printed)
			}
			if synced := strings.Count(printed, "\nSynced "); synced != len(c.release(namespace)) {
				t.Errorf("%d objects are synced:\n%s", synced, printed)
			}
			c.works(t, namespace)
		}
	})
}
