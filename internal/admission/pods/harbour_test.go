package pods_test

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
)

// harbour is a target system that needs all that an adapter can use: two variables, one of them only a default,
// and a file that holds the token's path. Its providerConfig is {"berth": "…"}, with an optional "prefix" of its variables.
type harbour struct{}

func (harbour) Type() string          { return "harbour" }
func (harbour) Limits() target.Limits { return target.Limits{} }

func (harbour) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	var c moored
	if len(providerConfig) > 0 {
		if err := json.Unmarshal(providerConfig, &c); err != nil {
			return nil, field.ErrorList{field.Invalid(path, string(providerConfig), "is not a JSON object")}
		}
	}
	if c.Berth == "" {
		return nil, field.ErrorList{field.Required(path.Child("berth"), "name a berth")}
	}
	return c, nil
}

type moored struct{ Berth, Prefix string }

func (c moored) Injection(place target.Place) target.Injection {
	return target.Injection{
		Keys:   []target.Key{{Name: "chart.json", Content: `{"berth":"` + c.Berth + `","file":` + quote(place.Token()) + `}`}},
		Mounts: []string{"chart.json"},
		Env: []target.Variable{
			{Name: c.Prefix + "HARBOUR_CHART", Value: place.File("chart.json")},
			{Name: c.Prefix + "HARBOUR_TIDE", Value: "high $(HARBOUR_CHART)", Default: true},
		},
	}
}
func (moored) Account() []target.Fixed { return nil }
func (moored) Audiences() []string     { return nil }

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}
