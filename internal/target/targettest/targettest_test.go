package targettest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
)

// recorder is a test whose failures are written down.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// plain is an adapter whose configuration is one value, unchecked, with a given injection.
type plain struct {
	inject   func(value string, place target.Place) target.Injection
	careless bool
}

func (plain) Type() string { return "plain" }
func (plain) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.RS256}, Audience: 10}
}

func (p plain) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	if p.careless {
		var config struct{ Value string }
		if err := json.Unmarshal(providerConfig, &config); err != nil {
			return plainConfig{}, field.ErrorList{field.Invalid(path, "", "")}
		}
		return plainConfig{config.Value, p.inject}, nil
	}
	fields := target.Read(providerConfig, "plain", path, "value")
	value := fields.Required("value", "must be x", func(string) bool { return true })
	if errs := fields.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return plainConfig{value, p.inject}, nil
}

type plainConfig struct {
	value  string
	inject func(value string, place target.Place) target.Injection
}

func (c plainConfig) Injection(place target.Place) target.Injection { return c.inject(c.value, place) }
func (plainConfig) Account() []target.Fixed                         { return nil }
func (plainConfig) Audiences() []string                             { return nil }

const head = `{"apiVersion":"plain.authentication.gardener.cloud/v1alpha1","kind":"Config","value":`

// The suite finds the faults that it is there for.
func TestBadInjections(t *testing.T) {
	key := func(name, content string) target.Injection {
		return target.Injection{Keys: []target.Key{{Name: name, Content: content}}}
	}
	env := func(name, value string) target.Injection {
		return target.Injection{Env: []target.Variable{{Name: name, Value: value}}}
	}
	profile := func(value string, place target.Place) target.Injection {
		return key("profile", "[default]\nweb_identity_token_file="+place.Token()+"\nx="+value+"\n")
	}
	for name, test := range map[string]struct {
		value  string
		inject func(string, target.Place) target.Injection
		want   string
	}{
		"good":                  {"x", profile, ""},
		"line end in a profile": {"x\nregion", profile, `has the line "region"`},
		"setting twice":         {"x\nx=y", profile, `has the line "x=y"`},
		"section":               {"x\n[evil]", profile, `has the line "[evil]"`},
		"comment":               {"x #y", profile, `has the line "x=x #y"`},
		"carriage return":       {"x\ry", profile, "control characters"},
		"quote in JSON": {`"`, func(v string, p target.Place) target.Injection {
			return key("json", `{"file":"`+p.Token()+`","x":"`+v+`"}`)
		}, "is not JSON"},
		"no token in JSON":         {"x", func(string, target.Place) target.Injection { return key("json", `{"file":"elsewhere"}`) }, "does not name the token"},
		"unescaped in YAML":        {"x: y: z", func(v string, p target.Place) target.Injection { return key("yaml", "a: "+v+"\nb: "+p.Token()+"\n") }, "is not YAML"},
		"no token in YAML":         {"x", func(string, target.Place) target.Injection { return key("yaml", "a: b\nc: d\n") }, "does not name the token"},
		"key of the token":         {"x", func(string, target.Place) target.Injection { return key("token", "x") }, "is taken"},
		"invalid key":              {"x", func(string, target.Place) target.Injection { return key("a/b", "x") }, `key "a/b"`},
		"mount without a key":      {"x", func(string, target.Place) target.Injection { return target.Injection{Mounts: []string{"a"}} }, "is not a key"},
		"control character":        {"x\ty", func(v string, _ target.Place) target.Injection { return env("A", v) }, "variable A"},
		"reference":                {"$(B)", func(v string, _ target.Place) target.Injection { return env("A", v) }, "variable A"},
		"invalid variable":         {"x", func(v string, _ target.Place) target.Injection { return env("A-B", v) }, `variable "A-B"`},
		"file that is not mounted": {"x", func(_ string, p target.Place) target.Injection { return env("A", p.File("b")) }, "which is not mounted"},
		"path of Linux on Windows": {"x", func(string, target.Place) target.Injection { return key("file", "/var/run/secrets/token") }, "a path of Linux"},
		"another one each time":    {"x", func(string, target.Place) target.Injection { return env("A", time.Now().String()) }, "another one"},
	} {
		value := string(marshal(t, test.value))
		r := &recorder{TB: t}
		Check(r, plain{inject: test.inject}, []byte(head+value+`}`))
		got := strings.Join(r.failures, "\n")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: failures %q, want one with %q", name, got, test.want)
		}
	}
}

func TestCarelessParser(t *testing.T) {
	r := &recorder{TB: t}
	checkStrict(r, Suite{Adapter: plain{careless: true}, Accepted: []string{head + `"x"}`}})
	got := strings.Join(r.failures, "\n")
	for _, want := range []string{"unknown field is accepted", "value twice is accepted", "value in another case is accepted", "another kind is accepted", `value ends with "\n" is accepted`, "array: a configuration beside errors", "the error"} {
		if !strings.Contains(got, want) {
			t.Errorf("the suite did not find: %s", want)
		}
	}
}
