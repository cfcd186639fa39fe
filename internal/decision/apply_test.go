package decision_test

import (
	"encoding/json"
	"testing"

	"github.com/credence-id/credence/internal/decision"
)

func TestApplied(t *testing.T) {
	object := map[string]any{"list": []any{"a", map[string]any{"b": 1}}}
	for _, c := range []struct {
		patch []decision.Operation
		want  string
	}{
		{[]decision.Operation{{Op: "add", Path: "/list/-", Value: "c"}, {Op: "remove", Path: "/list/0"}}, `{"list":[{"b":1},"c"]}`},
		{[]decision.Operation{{Op: "remove", Path: "/list/1/b"}}, `{"list":["a",{}]}`},
		{[]decision.Operation{{Op: "remove", Path: "/list/2"}}, ""},
		{[]decision.Operation{{Op: "add", Path: "/nowhere/b", Value: 1}}, ""},
	} {
		got, err := decision.Applied(&object, c.patch)
		if (err != nil) != (c.want == "") {
			t.Errorf("%+v: %v", c.patch, err)
			continue
		}
		if text, err := json.Marshal(got); c.want != "" && string(text) != c.want {
			t.Errorf("%+v makes %s, %v", c.patch, text, err)
		}
	}
}
