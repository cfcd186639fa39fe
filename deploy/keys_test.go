package deploy_test

import (
	"testing"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/test/testkit"
)

// Tools that replace or delete the objects of manifests would do so with the keys.
func TestNoManifestHasTheRing(t *testing.T) {
	objects := testkit.Need(deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.Registry, deploy.AgentPods))(t)
	for _, object := range objects {
		if object.GetKind() == "Secret" {
			t.Errorf("the manifests have the Secret %s", object.GetName())
		}
	}
}
