// Package targettest is what every target system must do. In go an adapter and providerConfigs that it accepts, out come test
// failures: configurations that pass although they are not strictly right, and injections that would break the file, the
// Secret or the pod that they are written to.
package targettest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

// Suite is an adapter, with the configurations that it must accept.
type Suite struct {
	Adapter target.Adapter
	// Accepted are providerConfigs that the adapter accepts, at least one. The first has all its fields.
	Accepted []string
	// Lax reports whether the adapter leaves the check of the providerConfig to others.
	Lax bool
}

func path() *field.Path { return field.NewPath("spec", "targetSystem", "providerConfig") }

// Run is the whole suite.
func Run(t *testing.T, suite Suite) {
	t.Helper()
	if len(suite.Accepted) == 0 {
		t.Fatal("the suite has no providerConfig that is accepted")
	}
	t.Run("type", func(t *testing.T) {
		if problems := validation.IsDNS1123Label(suite.Adapter.Type()); len(problems) > 0 {
			t.Errorf("type %q: %s", suite.Adapter.Type(), problems[0])
		}
	})
	t.Run("limits", func(t *testing.T) { checkLimits(t, suite.Adapter.Limits()) })
	for _, accepted := range suite.Accepted {
		t.Run("accepted", func(t *testing.T) {
			if _, errs := suite.Adapter.Parse([]byte(accepted), path()); len(errs) > 0 {
				t.Fatalf("%s: %v", accepted, errs)
			}
			Check(t, suite.Adapter, []byte(accepted))
		})
	}
	t.Run("order", func(t *testing.T) { checkOrder(t, suite) })
	if !suite.Lax {
		t.Run("strict", func(t *testing.T) { checkStrict(t, suite) })
	}
}

func checkLimits(t testing.TB, limits target.Limits) {
	known := []identity.Algorithm{identity.RS256, identity.ES256}
	if len(limits.Algorithms) == 0 || len(limits.Algorithms) != len(slices.Compact(slices.Sorted(slices.Values(limits.Algorithms)))) {
		t.Errorf("algorithms %v, want at least one, and none twice", limits.Algorithms)
	}
	for _, algorithm := range limits.Algorithms {
		if !slices.Contains(known, algorithm) {
			t.Errorf("algorithm %s is not one of %v", algorithm, known)
		}
	}
	if limits.Lifetime < 0 || limits.Subject < 0 || limits.Audiences < 0 || limits.Audience < 0 {
		t.Errorf("limits %+v, want 0 or more", limits)
	}
	if limits.Lifetime != 0 && limits.Lifetime < identity.ShortestLifetime {
		t.Errorf("lifetime %s: no token is as short", limits.Lifetime)
	}
}

// checkOrder: the order of fields and the space between them change nothing.
func checkOrder(t testing.TB, suite Suite) {
	for _, accepted := range suite.Accepted {
		var sorted bytes.Buffer
		testkit.Must(t, json.Indent(&sorted, marshal(t, object(t, accepted)), " ", "\t"))
		first, _ := suite.Adapter.Parse([]byte(accepted), path())
		second, errs := suite.Adapter.Parse(sorted.Bytes(), path())
		if len(errs) > 0 {
			t.Errorf("%s: %v", sorted.Bytes(), errs)
			continue
		}
		place := target.PodPlace(target.Linux, target.DefaultMountPath, "one")
		if diff := cmp.Diff(first.Injection(place), second.Injection(place)); diff != "" {
			t.Errorf("%s in another order (-first +second):\n%s", accepted, diff)
		}
	}
}

// checkStrict: whatever is not exactly right is refused, with an error below the path.
func checkStrict(t testing.TB, suite Suite) {
	accepted := suite.Accepted[0]
	members := object(t, accepted)
	open := bytes.TrimSpace([]byte(accepted))[1:]
	refused := map[string]string{
		"empty object": `{}`, "array": `[]`, "null": `null`, "number": `1`, "string": `"x"`, "not JSON": `{"apiVersion"`, "cut": accepted[:len(accepted)-1],
		"data after it": accepted + `{}`, "twice": accepted + accepted, "a word after it": accepted + "x",
		"unknown field": `{"unheardOf":"x",` + string(open),
	}
	for name, value := range members {
		refused[name+" twice"] = `{` + string(marshal(t, name)) + `:` + string(value) + `,` + string(open)
		refused[name+" a number"] = with(t, members, name, "1")
		refused[name+" null"] = with(t, members, name, "null")
		refused[name+" an object"] = with(t, members, name, "{}")
		for _, end := range []string{"\n", "\r\n", "\x00", " ", "\u2028"} {
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				t.Fatalf("%s of the first configuration is not a string", name)
			}
			refused[name+" ends with "+string(marshal(t, end))] = with(t, members, name, string(marshal(t, text+end)))
			refused[name+" begins with "+string(marshal(t, end))] = with(t, members, name, string(marshal(t, end+text)))
		}
		renamed := maps.Clone(members)
		delete(renamed, name)
		renamed[string(bytes.ToUpper([]byte(name[:1])))+name[1:]] = value
		refused[name+" in another case"] = string(marshal(t, renamed))
	}
	for _, other := range []string{"another.authentication.gardener.cloud/v1alpha1", suite.Adapter.Type() + ".authentication.gardener.cloud/v1", ""} {
		refused["apiVersion "+other] = with(t, members, "apiVersion", string(marshal(t, other)))
	}
	refused["another kind"] = with(t, members, "kind", `"Another"`)
	for name, config := range refused {
		parsed, errs := suite.Adapter.Parse([]byte(config), path())
		if len(errs) == 0 {
			t.Errorf("%s is accepted: %s", name, config)
		}
		if parsed != nil {
			t.Errorf("%s: a configuration beside errors", name)
		}
		for _, err := range errs {
			if len(err.Field) < len(path().String()) || err.Field[:len(path().String())] != path().String() || err.Detail == "" && err.Type != field.ErrorTypeDuplicate {
				t.Errorf("%s: the error %q has field %q", name, err, err.Field)
			}
		}
	}
}

func object(t testing.TB, text string) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return members
}

func with(t testing.TB, members map[string]json.RawMessage, name, value string) string {
	changed := maps.Clone(members)
	changed[name] = json.RawMessage(value)
	return string(marshal(t, changed))
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	out := testkit.Need(json.Marshal(value))(t)
	return out
}
