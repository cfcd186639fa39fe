package securitycontext_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/securitycontext"
)

// FuzzPodSpec shows both functions any pod spec that can come from outside. Neither may panic, or change it.
func FuzzPodSpec(f *testing.F) {
	for _, spec := range []string{
		`{}`, `null`, `{"containers":[{}],"initContainers":[{}],"ephemeralContainers":[{}]}`,
		`{"os":{"name":"windows"},"hostNetwork":true,"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1","runAsUserName":"NT AUTHORITY\\NETWORK SERVICE","hostProcess":true}},"containers":[{"securityContext":{"windowsOptions":{"gmsaCredentialSpec":"{}"}}}]}`,
		`{"os":{"name":"linux"},"securityContext":{"windowsOptions":{}},"initContainers":[{"restartPolicy":"Always","lifecycle":{"stopSignal":"SIGINT"}}]}`,
		`{"os":{},"ephemeralContainers":[{"securityContext":{"windowsOptions":{"hostProcess":true,"runAsUserName":""}}}]}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var spec *corev1.PodSpec
		if err := json.Unmarshal(document, &spec); err != nil || spec == nil {
			return
		}
		before := spec.DeepCopy()
		for _, err := range securitycontext.Validate(spec, field.NewPath("spec")) {
			if err.Error() == "" || err.Field == "" {
				t.Errorf("an empty error: %#v", err)
			}
		}
		for _, c := range spec.Containers {
			effective := securitycontext.Effective(spec.SecurityContext, c.SecurityContext)
			if diff := cmp.Diff(effective, securitycontext.Effective(spec.SecurityContext, effective)); diff != "" {
				t.Errorf("a second time changes something (-once +twice):\n%s", diff)
			}
		}
		if diff := cmp.Diff(before, spec); diff != "" {
			t.Errorf("what only looks at a spec changed it (-before +after):\n%s", diff)
		}
	})
}
