package pods_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/test/testkit"
)

// Each addition of each case is taken away once, as a later webhook could: for every target system, operating system and kind of container.
func TestIncompletePods(t *testing.T) {
	tried := 0
	for _, name := range cases(t) {
		var f facts
		unmarshal(t, read(t, filepath.Join("testdata", name, "facts.yaml")), &f)
		raw := testkit.Need(yaml.YAMLToJSONStrict(read(t, filepath.Join("testdata", name, "pod.yaml"))))(t)
		tried += withoutEachAddition(t, name, raw, f)
	}
	if tried < 100 {
		t.Errorf("%d additions were taken away, want those of all cases", tried)
	}
}

func TestIncompleteEphemeralContainers(t *testing.T) {
	f := running
	f.Ephemeral = []string{"debug"}
	if tried := withoutEachAddition(t, "ephemeral", runningPod(t, debugger(nil)), f); tried != 2 {
		t.Errorf("%d additions were taken away, want variables and a mount", tried)
	}
}

// withoutEachAddition holds Incomplete to a pod without one of its additions, to each of these, and to the whole pod. It returns their number.
func withoutEachAddition(t *testing.T, name string, raw []byte, f facts) int {
	t.Helper()
	judge := func(patch []pods.Operation) *pods.Denial {
		var pod corev1.Pod
		testkit.Must(t, json.Unmarshal(admissiontest.Apply(t, raw, patch), &pod))
		return pods.Incomplete(f.request(&pod))
	}
	var pod corev1.Pod
	testkit.Must(t, json.Unmarshal(raw, &pod))
	result := pods.Decide(f.request(&pod))
	if result.Denial != nil {
		if denial := judge(nil); denial == nil || denial.Message != result.Denial.Message {
			t.Errorf("%s: %+v, want the refusal of a new pod", name, denial)
		}
		return 0
	}
	if denial := judge(result.Patch); denial != nil {
		t.Errorf("%s: the whole pod is refused: %s", name, denial.Message)
	}
	for i, operation := range result.Patch {
		denial := judge(slices.Delete(slices.Clone(result.Patch), i, i+1))
		if denial == nil || denial.Code != 422 || !strings.Contains(denial.Message, "the pod lacks "+wantedItem(t, &pod, operation)) {
			t.Errorf("%s without %s: %+v, want %s named", name, operation.Path, denial, wantedItem(t, &pod, operation))
		}
	}
	return len(result.Patch)
}

// wantedItem is the first field that an addition has, in words.
func wantedItem(t *testing.T, pod *corev1.Pod, operation pods.Operation) string {
	t.Helper()
	path := strings.TrimSuffix(operation.Path, "/-")
	for list, names := range map[string][]string{"initContainers": namesOf(pod.Spec.InitContainers), "containers": namesOf(pod.Spec.Containers), "ephemeralContainers": {"before", "debug"}} {
		for i, name := range names {
			path = strings.Replace(path, "/"+list+"/"+string(rune('0'+i))+"/", "."+list+"["+name+"].", 1)
		}
	}
	path = strings.ReplaceAll(strings.TrimPrefix(strings.ReplaceAll(path, "/", "."), "."), "~1", "/")
	text := testkit.Need(json.Marshal(operation.Value))(t)
	if _, name, named := strings.Cut(string(text), `{"name":"`); named {
		return path + "[" + name[:strings.Index(name, `"`)] + "]"
	}
	return path
}

func namesOf(containers []corev1.Container) []string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}
