package workloadidentity

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a": "\ud83d\ude00", "b\/c":[1, 1.50]}`: `{"a": "😀", "b/c":[1, 1.50]}`,
		"{\"a\":\"\x7f\u0085\ufffe\u2028é<\"}":    `{"a":"\u007f\u0085\ufffe\u2028é<"}`,
		`{"a":"\"\\\n\u0000"}`:                    `{"a":"\"\\\u000a\u0000"}`,
		`{"a":"\ud800"}`:                          `{"a":"\ud800"}`, // left for the validation
		`{"a":1,"a":2}`:                           `{"a":1,"a":2}`,
		`{"a":`:                                   `{"a":`,
	} {
		got := canonical(&runtime.RawExtension{Raw: []byte(raw)})
		if string(got.Raw) != want {
			t.Errorf("%s became %s, want %s", raw, got.Raw, want)
		}
	}
}

func TestChanges(t *testing.T) {
	for number, want := range map[string]bool{
		"0": false, "-0": false, "0.0": false, "0e99999999999999999999": false, "1": false, "-17": false, "1.0": false, "1.50": false, "0.1": false,
		"1e3": false, "1E+3": false, "123000e-3": false, "9007199254740993": false, "9223372036854775807": false, "1e22": false,
		"12345678901234567890": true, "9223372036854775808": true, "1e400": true, "1e-400": true, "0.1000000000000000055511151231257827": true,
		"9007199254740993.0": true, "1e99999999999999999999": true, "1e-99999999999999999999": true,
	} {
		if got := changes(number); got != want {
			t.Errorf("changes(%s) = %t, want %t", number, got, want)
		}
	}
}

// Accepted text is the same to all readers, and readable as YAML.
func FuzzProviderConfigText(f *testing.F) {
	for _, seed := range []string{`{"a":"\ud83d\ude00\/"}`, `{"a":"\ud800"}`, "{\"\x7f\":[1e5,-0.0,12345678901234567890]}", `{"a":"\\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(validateProviderConfig(raw, providerConfigPath)) > 0 || checkText(raw) != nil {
			return
		}
		got := canonical(&runtime.RawExtension{Raw: raw}).Raw
		var before, after any
		if err := json.Unmarshal(raw, &before); err != nil {
			return // a number that no float holds, which the decoder refuses
		}
		if err := json.Unmarshal(got, &after); err != nil || cmp.Diff(before, after) != "" {
			t.Fatalf("%q became %q: %v", raw, got, err)
		}
		if _, err := yaml.JSONToYAML(got); err != nil {
			t.Fatalf("%q cannot be written as YAML: %v", got, err)
		}
		if err := checkText(got); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
	})
}

// An object that was stored by a less strict server can still be labelled and deleted.
func TestTextThatWasStored(t *testing.T) {
	old := of("generic", `{"apiVersion":"a/v1","kind":"K","x":"\ud800","y":12345678901234567890}`, "a\u200b")
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if errs := validateUpdate(labelled, old); len(errs) != 0 {
		t.Errorf("labelled: %v", errs)
	}
	labelled.Spec.Audiences = []string{"b\u200b"}
	labelled.Spec.TargetSystem.ProviderConfig.Raw = []byte(`{"apiVersion":"a/v1","kind":"K","x":"\ud801","y":1}`)
	if errs := validateUpdate(labelled, old); len(errs) != 2 {
		t.Errorf("changed: %v, want two errors", errs)
	}
}
