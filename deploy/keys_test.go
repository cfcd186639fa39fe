package deploy_test

import (
	"testing"

	"github.com/credence-id/credence/deploy"
)

// Tools that replace or delete the objects of manifests would do so with the keys.
func TestNoManifestHasTheRing(t *testing.T) {
	objects, err := deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.Registry, deploy.AgentPods)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Secret" {
			t.Errorf("the manifests have the Secret %s", object.GetName())
		}
	}
}
