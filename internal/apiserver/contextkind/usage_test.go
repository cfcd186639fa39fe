package contextkind_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

func counted(usage, expires string) v1alpha1.ContextKindSpec {
	spec := shoots()
	spec.Usage, spec.Expires = usage, expires
	return spec
}

func TestAmounts(t *testing.T) {
	for name, test := range map[string]struct{ usage, object, want, fault string }{
		"one object":              {"", `{}`, "objects: 1", ""},
		"texts":                   {"{'cpu': '500m', 'memory': '2Gi'}", `{}`, "cpu: 500m, memory: 2Gi, objects: 1", ""},
		"numbers":                 {"{'cpu': 3}", `{}`, "cpu: 3, objects: 1", ""},
		"both":                    {"{'cpu': dyn(3), 'memory': dyn('1Gi')}", `{}`, "cpu: 3, memory: 1Gi, objects: 1", ""},
		"a sum":                   {"{'cpu': object.workers.map(w, int(w.max)).sum()}", `{"workers":[{"max":2},{"max":3}]}`, "cpu: 5, objects: 1", ""},
		"no object":               {"{'objects': 0}", `{}`, "objects: 0", ""},
		"of the object":           {"object.usage", `{"usage":{"cpu":"1"}}`, "cpu: 1, objects: 1", ""},
		"a field that is missing": {"{'cpu': object.cpu}", `{}`, "", "spec.usage of ContextKind shoots.core.gardener.cloud: no such key: cpu"},
		"no quantity":             {"{'cpu': 'much'}", `{}`, "", `: cpu: "much" is not a quantity`},
		"a long one":              {"{'cpu': object.cpu}", `{"cpu":"` + strings.Repeat("9", 65) + `"}`, "", "is not a quantity"},
		"a negative one":          {"{'cpu': -1}", `{}`, "", ": cpu: -1 is negative"},
		"a fraction":              {"{'cpu': object.cpu}", `{"cpu":1.5}`, "", "the value is of type float64, and not a quantity"},
		"no map":                  {"object.cpu", `{"cpu":"1"}`, "", "the value is of type string, and not a map of quantities"},
		"a key of numbers":        {"object.usage.map(x, x).size() == 0 ? {} : {dyn(1): dyn('1')}", `{"usage":[1]}`, "", `: "1" is not the name of what is counted`},
		"too many":                {"object.usage", `{"usage":{` + `"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"r":1,"s":1,"t":1,"u":1` + `}}`, "", "the map has 21 entries, at most 20"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, errs := contextkind.Compile(counted(test.usage, ""))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got, err := kind.Amounts(t.Context(), decode(t, test.object))
			var texts []string
			for _, name := range slices.Sorted(maps.Keys(got)) {
				amount := got[name]
				texts = append(texts, name+": "+amount.String())
			}
			if strings.Join(texts, ", ") != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%v, %v; want %+v", texts, err, test)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	kind, errs := contextkind.Compile(counted("", "object.?ends.orValue('')"))
	if len(errs) > 0 || !kind.Expires() {
		t.Fatal(errs)
	}
	for object, want := range map[string]time.Time{`{}`: {}, `{"ends":"2026-01-31T12:00:00Z"}`: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)} {
		if got, err := kind.End(t.Context(), decode(t, object)); err != nil || !got.Equal(want) {
			t.Errorf("%s ends at %s, %v", object, got, err)
		}
	}
	for _, object := range []string{`{"ends":"soon"}`, `{"ends":1}`} {
		if _, err := kind.End(t.Context(), decode(t, object)); err == nil || !strings.HasPrefix(err.Error(), "spec.expires of ContextKind shoots.core.gardener.cloud: ") {
			t.Errorf("%s: %v", object, err)
		}
	}
}

func TestUsageThatDoesNotCompile(t *testing.T) {
	for _, test := range []struct{ usage, expires, want string }{
		{"[1]", "", "spec.usage: Invalid value: \"[1]\": must evaluate to map(string, dyn), and not to list(int)"},
		{"{'cpu': true}", "", "spec.usage: Invalid value"},
		{"object[", "", "spec.usage: Invalid value"},
		{"", "1", "spec.expires: Invalid value: \"1\": must evaluate to string"},
	} {
		if _, errs := contextkind.Compile(counted(test.usage, test.expires)); len(errs) != 1 || !strings.Contains(errs.ToAggregate().Error(), test.want) {
			t.Errorf("%v, want %q", errs, test.want)
		}
	}
}
