// Package admissiontest applies what admission decides to objects, for tests of decisions: an object as JSON and a JSON patch give the
// patched object.
package admissiontest

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/credence-id/credence/test/testkit"
)

// Apply applies the operations of a JSON patch to an object.
func Apply[Operation any](t testing.TB, object []byte, operations []Operation) []byte {
	t.Helper()
	if len(operations) == 0 {
		return object
	}
	text := Encode(t, operations)
	patch, err := jsonpatch.DecodePatch(text)
	testkit.Must(t, err)
	patched, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", text, object, err)
	}
	return patched
}

// Patched returns a copy of an object with the operations of a JSON patch.
func Patched[Object, Operation any](t testing.TB, object *Object, operations []Operation) *Object {
	t.Helper()
	patched := new(Object)
	testkit.Must(t, json.Unmarshal(Apply(t, Encode(t, object), operations), patched), "the patched object is invalid")
	return patched
}

// Encode returns a value as JSON.
func Encode(t testing.TB, value any) []byte {
	t.Helper()
	text := testkit.Need(json.Marshal(value))(t)
	return text
}
