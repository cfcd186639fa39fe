package deploy_test

import (
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/test/testkit"
	"github.com/credence-id/credence/test/testkit/policies"
)

// Each policy uses what CEL has in the oldest version of Kubernetes that is supported.
func TestPoliciesCompileOnTheOldestKubernetes(t *testing.T) {
	oldest := version.MustParse(testkit.Version(t, "KUBERNETES_OLDEST"))
	compiled := 0
	for _, file := range testkit.Need(deploy.Files())(t) {
		for _, object := range file.Objects {
			if object.GetKind() != "ValidatingAdmissionPolicy" {
				continue
			}
			policy := &registrationv1.ValidatingAdmissionPolicy{}
			testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
			policies.CompileOn(t, policy, oldest)
			compiled++
		}
	}
	if compiled == 0 {
		t.Error("no policy is shipped")
	}
}
