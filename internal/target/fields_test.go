package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
)

const head = `{"apiVersion":"fruit.authentication.gardener.cloud/v1alpha1","kind":"Config"`

// Each error names its field, all faults are reported at once, and only once; another target system's configuration is reported alone.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		want   []string // "field: detail", the latter cut
	}{
		"right":             {head + `,"color":"red"}`, nil},
		"optional":          {head + `,"color":"red","taste":"sweet"}`, nil},
		"optional, empty":   {head + `,"color":"red","taste":""}`, nil},
		"nothing":           {" \n", []string{"p: an identity of type fruit needs one: apiVersion fruit.authentication.gardener.cloud/v1alpha1, kind Config, and its fields (color, taste)"}},
		"another target":    {`{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Role","iamRoleARN":"x"}`, []string{"p.apiVersion: is not of this target system: an identity of type fruit needs fruit.authentication.gardener.cloud/v1alpha1"}},
		"another kind":      {`{"apiVersion":"fruit.authentication.gardener.cloud/v1alpha1","kind":"Basket","color":"red"}`, []string{"p.kind: is not known"}},
		"missing":           {head + `}`, []string{"p.color: must be red"}},
		"empty":             {head + `,"color":""}`, []string{"p.color: must be red"}},
		"null":              {head + `,"color":null}`, []string{"p.color: must be a string"}},
		"number":            {head + `,"color":"red","taste":1}`, []string{"p.taste: must be a string"}},
		"twice":             {head + `,"color":"red","color":"red"}`, []string{"p.color: "}},
		"twice, once null":  {head + `,"color":null,"color":"red"}`, []string{"p.color: must be a string", "p.color: "}},
		"escaped twice":     {head + `,"color":"red","\u0063olor":"red"}`, []string{"p.color: "}},
		"in another case":   {head + `,"color":"red","Taste":"sweet"}`, []string{"p.Taste: is not a field of it: it is written taste"}},
		"unheard of":        {head + `,"color":"red","size":"1"}`, []string{"p.size: is not a field of it: there are apiVersion, kind, color, taste"}},
		"all at once":       {head + `,"size":"1","taste":"bitter","color":"blue"}`, []string{"p.size: ", "p.color: must be red", "p.taste: must be sweet"}},
		"cut":               {head, []string{"p: is not JSON"}},
		"data after it":     {head + `,"color":"red"}{}`, []string{"p: has data after the end"}},
		"a bracket after":   {head + `,"color":"red"}]`, []string{"p: has data after the end"}},
		"array":             {`[]`, []string{"p: is not a JSON object"}},
		"very long unknown": {head + `,"color":"red","` + strings.Repeat("x", 100) + `":"1"}`, []string{"p." + strings.Repeat("x", 64) + "…: "}},
	} {
		t.Run(name, func(t *testing.T) {
			fields := target.Read([]byte(test.config), "fruit", field.NewPath("p"), "color", "taste")
			fields.Required("color", "must be red", func(color string) bool { return color == "red" })
			fields.Optional("taste", "must be sweet", func(taste string) bool { return taste == "sweet" })
			var got []string
			for i, err := range fields.Errors() {
				line := err.Field + ": " + err.Detail
				if i < len(test.want) && strings.HasPrefix(line, test.want[i]) {
					line = test.want[i]
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
