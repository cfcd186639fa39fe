package pods_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

var running = facts{Account: "app", Identities: []identity{{Name: "banana", Type: "harbour", ProviderConfig: json.RawMessage(`{"berth":"7"}`)}}}

// runningPod is a pod that was given the identity of running, with an ephemeral container of before and the new ones given.
func runningPod(t testing.TB, added ...corev1.EphemeralContainer) []byte {
	t.Helper()
	raw := read(t, "testdata/node-name/pod.yaml")
	var pod corev1.Pod
	unmarshal(t, raw, &pod)
	text, err := json.Marshal(&pod)
	testkit.Must(t, err)
	patched := admissiontest.Apply(t, text, pods.Decide(running.request(&pod)).Patch)
	unmarshal(t, patched, &pod)
	before := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "before"}}
	pod.Spec.EphemeralContainers = append([]corev1.EphemeralContainer{before}, added...)
	if text, err = json.Marshal(&pod); err != nil {
		t.Fatal(err)
	}
	return text
}

func debugger(change func(*corev1.EphemeralContainerCommon)) corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug"}}
	if change != nil {
		change(&c.EphemeralContainerCommon)
	}
	return c
}

func TestEphemeralContainers(t *testing.T) {
	f := running
	f.Ephemeral = []string{"debug"}
	got := decide(t, runningPod(t, debugger(nil)), f)
	if got.Denial != nil || len(got.Patch) != 2 {
		t.Fatalf("%+v, want variables and a mount", got)
	}
	for _, operation := range got.Patch {
		if !strings.HasPrefix(operation.Path, "/spec/ephemeralContainers/1/") {
			t.Errorf("%s %s touches what can't be changed in a pod that runs", operation.Op, operation.Path)
		}
	}

	t.Run("none where the pod has no volume", func(t *testing.T) {
		text := strings.ReplaceAll(string(runningPod(t, debugger(nil))), `"workload-identity-b493d48364","projected"`, `"other","projected"`)
		if got := decide(t, []byte(text), f); got.Denial != nil || len(got.Patch) > 0 {
			t.Errorf("%+v, want nothing", got)
		}
	})
	t.Run("one that may not be used any more blocks no container", func(t *testing.T) {
		f := facts{Account: "app", Ephemeral: f.Ephemeral, Identities: []identity{{Name: "banana", Type: "harbour", Forbidden: true}}}
		if got := decide(t, runningPod(t, debugger(nil)), f); got.Denial != nil || len(got.Patch) > 0 || len(got.Warnings) != 1 {
			t.Errorf("%+v, want a warning", got)
		}
	})
	t.Run("nor does a service account that is gone", func(t *testing.T) {
		if got := decide(t, runningPod(t, debugger(nil)), facts{Account: "app", Missing: true, Ephemeral: f.Ephemeral}); got.Denial != nil || len(got.Patch) > 0 {
			t.Errorf("%+v, want nothing", got)
		}
	})
	t.Run("another account's token", func(t *testing.T) {
		foreign := debugger(func(c *corev1.EphemeralContainerCommon) {
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: tokensecret.NameFor("other", "banana")}}}}
		})
		if got := decide(t, runningPod(t, foreign), f); got.Denial == nil || got.Denial.Code != 403 {
			t.Errorf("%+v, want 403", got)
		}
	})
	t.Run("another mount at our path", func(t *testing.T) {
		taken := debugger(func(c *corev1.EphemeralContainerCommon) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/run/secrets/workload-identity/banana"}}
		})
		if got := decide(t, runningPod(t, taken), f); got.Denial == nil || got.Denial.Code != 422 {
			t.Errorf("%+v, want 422", got)
		}
	})
	t.Run("an annotation may name containers to come", func(t *testing.T) {
		text := strings.Replace(string(runningPod(t, debugger(nil))), `"namespace":"orchard"`, `"namespace":"orchard","annotations":{"identity.credence.dev/skip-containers":"later,debug"}`, 1)
		if got := decide(t, []byte(text), f); got.Denial != nil || len(got.Patch) > 0 {
			t.Errorf("%+v, want nothing", got)
		}
	})
}
