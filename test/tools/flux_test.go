package tools

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/test/testkit"
)

// Flux converges at the first reconciliation of a Kustomization that has a binding and its identity, waits until they are Ready, and finds nothing to
// change afterwards.
func TestFluxAppliesABindingWithItsIdentity(t *testing.T) {
	onBoth(t, func(t *testing.T, c cluster, namespace string) {
		kube := testkit.Need(client.New(c.config(t), client.Options{}))(t)
		manager := ssa.NewResourceManager(kube, polling.NewStatusPoller(kube, kube.RESTMapper(), polling.Options{}), ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
		objects := c.release(namespace)
		manager.SetOwnerLabels(objects, "shop", namespace)
		testkit.Need(manager.ApplyAllStaged(t.Context(), objects, ssa.DefaultApplyOptions()))(t)
		testkit.Must(t, manager.Wait(objects, ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: 5 * time.Minute}))
		c.works(t, namespace)
		objects = c.release(namespace)
		manager.SetOwnerLabels(objects, "shop", namespace)
		again := testkit.Need(manager.ApplyAllStaged(t.Context(), objects, ssa.DefaultApplyOptions()))(t)
		for _, entry := range again.Entries {
			if entry.Action != ssa.UnchangedAction {
				t.Errorf("%s is %s again", entry.Subject, entry.Action)
			}
		}
	})
}
