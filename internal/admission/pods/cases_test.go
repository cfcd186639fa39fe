package pods_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

var update = flag.Bool("update", false, "write testdata/*/want.yaml anew")

// facts are the cluster's state of a case, in facts.yaml.
type facts struct {
	Account      string            `json:"account"`
	Missing      bool              `json:"missing,omitempty"` // the service account
	Ephemeral    []string          `json:"ephemeral,omitempty"`
	RuntimeClass map[string]string `json:"runtimeClass,omitempty"` // its node selector
	Identities   []identity        `json:"identities,omitempty"`
	Delivery     string            `json:"delivery,omitempty"`
}

type identity struct {
	Name           string          `json:"name"`
	Type           string          `json:"type"`
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
	Unknown        bool            `json:"unknown,omitempty"`
	Deleting       bool            `json:"deleting,omitempty"`
	Forbidden      bool            `json:"forbidden,omitempty"`
}

// decision is want.yaml.
type decision struct {
	Denial   *pods.Denial     `json:"denial,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
	Patch    []pods.Operation `json:"patch,omitempty"`
}

// adapters are those of the project, and one for tests that uses all that an adapter can.
func adapters(targetType string) target.Adapter {
	if targetType == (harbour{}).Type() {
		return harbour{}
	}
	return targets.For(targetType)
}

func (f facts) request(pod *corev1.Pod) pods.Request {
	r := pods.Request{Namespace: "orchard", Pod: pod, Ephemeral: f.Ephemeral, RuntimeClassNodes: f.RuntimeClass, Delivery: f.Delivery, Adapters: adapters,
		Account: pods.Account{Name: f.Account, Exists: !f.Missing}}
	for _, i := range f.Identities {
		r.Account.Identities = append(r.Account.Identities, pods.Identity{
			Name: i.Name, Exists: !i.Unknown, Deleting: i.Deleting, Allowed: !i.Forbidden, Type: i.Type, ProviderConfig: i.ProviderConfig,
		})
	}
	return r
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content := testkit.Need(os.ReadFile(path))(t)
	return content
}

func unmarshal(t testing.TB, content []byte, into any) {
	t.Helper()
	testkit.Must(t, yaml.UnmarshalStrict(content, into))
}

func TestCases(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			var f facts
			unmarshal(t, read(t, filepath.Join(dir, "facts.yaml")), &f)
			raw := testkit.Need(yaml.YAMLToJSONStrict(read(t, filepath.Join(dir, "pod.yaml"))))(t)
			got := decide(t, raw, f)
			content := testkit.Need(yaml.Marshal(got))(t)
			want := filepath.Join(dir, "want.yaml")
			if *update {
				testkit.Must(t, os.WriteFile(want, content, 0o644))
			}
			if diff := cmp.Diff(string(read(t, want)), string(content)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// decide decides on a pod, and holds the patch to what every patch must be: additions alone, and empty the second time.
func decide(t testing.TB, raw []byte, f facts) decision {
	t.Helper()
	var pod corev1.Pod
	testkit.Must(t, json.Unmarshal(raw, &pod))
	before := pod.DeepCopy()
	result := pods.Decide(f.request(&pod))
	if diff := cmp.Diff(before, &pod); diff != "" {
		t.Errorf("the pod that was passed in was changed:\n%s", diff)
	}
	if result.Denial != nil {
		if len(result.Patch) > 0 || result.Denial.Message == "" || !slices.Contains([]int32{http.StatusForbidden, http.StatusUnprocessableEntity}, result.Denial.Code) {
			t.Errorf("strange denial: %+v", result)
		}
		return decision{Denial: result.Denial}
	}
	patched := admissiontest.Apply(t, raw, result.Patch)
	var original, changed any
	testkit.Must(t, json.Unmarshal(raw, &original))
	testkit.Must(t, json.Unmarshal(patched, &changed))
	if lost := missing(original, changed, ""); lost != "" {
		t.Errorf("the patch lost or changed %s", lost)
	}
	var again corev1.Pod
	testkit.Must(t, json.Unmarshal(patched, &again), "the patched pod is invalid")
	if second := pods.Decide(f.request(&again)); second.Denial != nil || len(second.Patch) > 0 {
		t.Errorf("on the patched pod: %+v, want nothing", second)
	} else if diff := cmp.Diff(result.Warnings, second.Warnings); diff != "" {
		t.Errorf("warnings of the second time (-first +second):\n%s", diff)
	}
	return decision{Warnings: result.Warnings, Patch: result.Patch}
}

// missing names the first value of before that is not in after: members may be added to objects, and elements to the ends of
// lists.
func missing(before, after any, at string) string {
	switch before := before.(type) {
	case map[string]any:
		changed, ok := after.(map[string]any)
		if !ok {
			return at
		}
		for member, value := range before {
			if lost := missing(value, changed[member], at+"/"+member); lost != "" {
				return lost
			}
		}
	case []any:
		changed, ok := after.([]any)
		if !ok || len(changed) < len(before) {
			return at
		}
		for i, value := range before {
			if lost := missing(value, changed[i], at+"/*"); lost != "" {
				return lost
			}
		}
	case nil:
	default:
		if before != after {
			return at
		}
	}
	return ""
}

func cases(t testing.TB) []string {
	t.Helper()
	entries := testkit.Need(os.ReadDir("testdata"))(t)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "fuzz" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Every target system has a case of each kind.
func TestEveryTargetHasCases(t *testing.T) {
	for _, targetType := range targets.Types() {
		for _, os := range []target.OS{target.Linux, target.Windows} {
			for _, verdict := range []string{"allowed", "denied"} {
				checkCase(t, targetType, os, verdict)
			}
		}
	}
}

func checkCase(t *testing.T, targetType string, system target.OS, verdict string) {
	t.Helper()
	dir := filepath.Join("testdata", targetType+"-"+string(system)+"-"+verdict)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("%v: add pod.yaml and facts.yaml there, and run this test with -update", err)
		return
	}
	var f facts
	unmarshal(t, read(t, filepath.Join(dir, "facts.yaml")), &f)
	if len(f.Identities) == 0 || f.Identities[0].Type != targetType {
		t.Errorf("%s: its first identity is not of type %s", dir, targetType)
	}
	var want decision
	unmarshal(t, read(t, filepath.Join(dir, "want.yaml")), &want)
	if (want.Denial == nil) != (verdict == "allowed") {
		t.Errorf("%s: the decision is not %q", dir, verdict)
	}
	if verdict == "denied" {
		return
	}
	text := testkit.Need(json.Marshal(want.Patch))(t)
	if strings.Contains(string(text), `C:\\var\\run`) != (system == target.Windows) {
		t.Errorf("%s: its paths are not those of %s", dir, system)
	}
	if !strings.Contains(string(text), `"readOnly":true`) || !strings.Contains(string(text), `"optional":false`) {
		t.Errorf("%s: the token is not mounted as it must be: %s", dir, text)
	}
}
