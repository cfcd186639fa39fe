package gmsa_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
)

func TestCanonical(t *testing.T) {
	got, err := gmsa.Canonical(map[string]any{"b": []any{"<&>"}, "a": map[string]any{"z": "1", "y": "2"}})
	if err != nil || got != `{"a":{"y":"2","z":"1"},"b":["<&>"]}` {
		t.Errorf("%s, %v", got, err)
	}
	for name, wrong := range map[string]any{
		"nothing": nil, "no object": "x", "an empty object": map[string]any{},
		"too much": map[string]any{"a": strings.Repeat("x", gmsa.MaxContents)},
	} {
		if got, err := gmsa.Canonical(wrong); err == nil {
			t.Errorf("%s: %.40s", name, got)
		}
	}
}

// Whatever is the same by Same must be the same to any reader of JSON.
func FuzzSame(f *testing.F) {
	for _, seed := range []string{contents, "{}", `{"a":1,"a":1}`, `{"a":{"b":[1,2,{"c":null}]}}`, "[", `{"a":"\ud800"}`, "\xff", `{"a":1.0}`} {
		f.Add(seed, contents)
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if gmsa.Same(a, b) != nil || a == b {
			return
		}
		var x, y any
		if err := json.Unmarshal([]byte(a), &x); err != nil {
			t.Fatalf("%q passed and is not JSON: %v", a, err)
		}
		if err := json.Unmarshal([]byte(b), &y); err != nil {
			t.Fatalf("%q passed and is not JSON: %v", b, err)
		}
		one, _ := json.Marshal(x)
		other, _ := json.Marshal(y)
		if string(one) != string(other) {
			t.Fatalf("%s and %s are not the same", one, other)
		}
	})
}

// Pods and annotations of any kind are decided on without a panic, and never admitted without a right.
func FuzzAuthorize(f *testing.F) {
	f.Add([]byte(`{"metadata":{"annotations":{"pod.alpha.windows.kubernetes.io/gmsa-credential-spec":"{}"}},"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"a"}}}}`))
	f.Add([]byte(`{"spec":{"initContainers":[{"securityContext":{"windowsOptions":{"gmsaCredentialSpec":"{}"}}}],"ephemeralContainers":[{"name":"x","securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"../a"}}}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var pod corev1.Pod
		if json.Unmarshal(body, &pod) != nil {
			return
		}
		for _, annotations := range []bool{false, true} {
			references := gmsa.References(&pod, annotations)
			names, denial := gmsa.Names(references)
			if denial != nil {
				continue
			}
			specs, uses := map[string]gmsa.Spec{}, map[string]authority.Answer{}
			for _, name := range names {
				uses[name] = authority.Answer{Allowed: true}
				specs[name] = gmsa.Spec{Exists: true, Contents: contents}
			}
			gmsa.Expand(gmsa.Request{ServiceAccount: "web", References: references, Specs: specs, Uses: uses})
			result := gmsa.Authorize(gmsa.Request{Namespace: "n", ServiceAccount: "s", References: references, Specs: specs})
			if len(references) > 0 && result.Denial == nil {
				t.Fatalf("admitted without a right: %s", body)
			}
		}
	})
}
