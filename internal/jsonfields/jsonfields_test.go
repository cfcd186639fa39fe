package jsonfields

import (
	"slices"
	"testing"
)

func TestUnknown(t *testing.T) {
	type inner struct {
		A int `json:"a"`
	}
	var into struct {
		Spec  inner   `json:"spec"`
		Items []inner `json:"items"`
	}
	const text = `{"spec": {"a": 1, "b": 2}, "items": [{"a": 1}, {"c": 3}], "status": {"d": 4}}`
	got, err := Unknown([]byte(text), &into, "status")
	if want := []string{"spec.b", "items[1].c"}; err != nil || !slices.Equal(got, want) || into.Spec.A != 1 {
		t.Errorf("unknown are %q, %v, want %q; decoded %+v", got, err, want, into)
	}
	if _, err := Unknown([]byte(`{`), &into); err == nil {
		t.Error("half an object is decoded")
	}
}
