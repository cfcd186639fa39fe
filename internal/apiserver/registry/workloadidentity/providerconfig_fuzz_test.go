package workloadidentity

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/test/testkit"
)

// Whatever is accepted is one JSON object whose readers all see the same: writing what was read gives the same keys.
func FuzzProviderConfig(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"a/v1","kind":"K"}`, `{"apiVersion":"a/v1","kind":"K","x":{"y":[1,2,{"z":null}]}}`,
		`{"apiVersion":"a/v1","kind":"K","kind":"L"}`, `{`, `[]`, `null`, ``, `{} {}`, "{\"a\":\"\xff\"}", `{"a":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if errs := validateProviderConfig(raw, field.NewPath("x")); len(errs) > 0 {
			return
		}
		var object map[string]json.RawMessage
		testkit.Must(t, json.Unmarshal(raw, &object), "accepted what is not an object")
		var kind string
		if err := json.Unmarshal(object["kind"], &kind); err != nil || kind == "" {
			t.Fatalf("accepted kind %s", object["kind"])
		}
		if len(raw) > maxProviderConfigBytes {
			t.Fatalf("accepted %d bytes", len(raw))
		}
		var compact bytes.Buffer
		testkit.Must(t, json.Compact(&compact, raw), "accepted what can't be stored")
		if errs := validateProviderConfig(compact.Bytes(), field.NewPath("x")); len(errs) > 0 {
			t.Fatalf("refused in its stored form: %v", errs)
		}
	})
}
