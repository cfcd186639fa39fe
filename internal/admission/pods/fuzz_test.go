package pods_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/test/testkit"
)

// Whatever a pod's annotations, it is refused, or gets a patch that applies and leaves nothing for a second time.
func FuzzAnnotations(f *testing.F) {
	for _, seed := range []string{"", "main", "/a/b/", `c:\x`, "/../", "a,b", "/$(A)", "//", "/a//b", "\x00", "/é", `/a\b`, `C:/x\y`} {
		f.Add(seed, seed, "app", false)
		f.Add(seed, "", seed, true)
	}
	f.Fuzz(func(t *testing.T, mountPath, skip, listed string, windows bool) {
		pod := corev1.Pod{}
		pod.Namespace = "orchard"
		pod.Annotations = map[string]string{v1alpha1.AnnotationMountPath: mountPath, v1alpha1.AnnotationSkipContainers: skip}
		pod.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "proxy"}}
		if windows {
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		}
		account := &corev1.ServiceAccount{}
		account.Annotations = map[string]string{v1alpha1.AnnotationAccountIdentities: listed}
		names, denial := pods.Names(account)
		if (names != nil) && denial != nil {
			t.Errorf("%q: both %q and %v", listed, names, denial)
		}
		raw := testkit.Need(json.Marshal(&pod))(t)
		decide(t, raw, running)
	})
}

// FuzzPod decodes as the API server does: it sends what it has decoded itself.
func FuzzPod(f *testing.F) {
	for _, name := range cases(f) {
		raw, err := yaml.YAMLToJSON(read(f, filepath.Join("testdata", name, "pod.yaml")))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		pod := corev1.Pod{}
		if json.Unmarshal(raw, &pod) != nil {
			t.Skip("no pod")
		}
		pod.Namespace = "orchard"
		canonical, err := json.Marshal(&pod)
		if err != nil {
			t.Skip("no JSON form")
		}
		decide(t, canonical, running)
	})
}
