package pods_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/test/testkit"
)

// stored returns the pod of a case as it is stored after admission, with the state of the cluster.
func stored(t *testing.T, name string) (*corev1.Pod, facts, pods.Result) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	var f facts
	unmarshal(t, read(t, filepath.Join(dir, "facts.yaml")), &f)
	raw := testkit.Need(yaml.YAMLToJSONStrict(read(t, filepath.Join(dir, "pod.yaml"))))(t)
	var asked, pod corev1.Pod
	testkit.Must(t, json.Unmarshal(raw, &asked))
	result := pods.Decide(f.request(&asked))
	testkit.Must(t, json.Unmarshal(admissiontest.Apply(t, raw, result.Patch), &pod))
	return &pod, f, result
}

// A stored pod is decided on again as it was the first time.
func TestRequestedPodIsDecidedOnAgain(t *testing.T) {
	for _, name := range cases(t) {
		pod, f, first := stored(t, name)
		if first.Denial != nil || f.Ephemeral != nil {
			continue
		}
		// Nothing in a stored pod shows that a container set a variable of the identity itself, with the identity's value.
		if name == "variables-kept" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			requested := pods.Requested(f.request(pod))
			again := pods.Decide(f.request(requested))
			if diff := cmp.Diff(first.Warnings, again.Warnings); diff != "" || again.Denial != nil {
				t.Fatalf("denial %v, warnings (-first +second):\n%s", again.Denial, diff)
			}
			raw := testkit.Need(json.Marshal(requested))(t)
			var admitted corev1.Pod
			testkit.Must(t, json.Unmarshal(admissiontest.Apply(t, raw, again.Patch), &admitted))
			if diff := cmp.Diff(pod, &admitted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the pod differs (-first +second):\n%s", diff)
			}
		})
	}
}

// Additions for an identity that was replaced since, or that the account does not list any more, are not the container's.
func TestRequestedPodOfAnotherConfig(t *testing.T) {
	pod, f, _ := stored(t, "aws-linux-allowed")
	f.Identities[0].ProviderConfig = bytes.ReplaceAll(f.Identities[0].ProviderConfig, []byte("role/"), []byte("role/other-"))
	if again := pods.Decide(f.request(pods.Requested(f.request(pod)))); again.Denial != nil || len(again.Warnings) > 0 {
		t.Errorf("with another role: %+v, want no denial and no warning", again)
	}
	f.Identities = nil
	if again := pods.Decide(f.request(pods.Requested(f.request(pod)))); again.Denial != nil {
		t.Errorf("taken off the account: %+v, want no denial", again.Denial)
	}
}
