package deploy

import (
	"os"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/testkit"
)

// The kubelet goes on giving the driver a token of an account that was deleted and made again, for 80 % of the token's time.
func TestTokensOfPodsAreShort(t *testing.T) {
	content := testkit.Need(os.ReadFile("base/58-node.yaml"))(t)
	var driver storagev1.CSIDriver
	if err := yaml.Unmarshal(content, &driver); err != nil || len(driver.Spec.TokenRequests) == 0 {
		t.Fatalf("%v, with %d token requests", err, len(driver.Spec.TokenRequests))
	}
	for _, request := range driver.Spec.TokenRequests {
		if request.ExpirationSeconds == nil || *request.ExpirationSeconds != 600 {
			t.Errorf("the token for the audience %q is not one of 600 seconds: %v", request.Audience, request.ExpirationSeconds)
		}
	}
}
