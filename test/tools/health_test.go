package tools

import (
	"os"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/testkit"
)

// The rules for Argo CD in the documents give the health that an object has, by the interpreter that Argo CD has.
func TestHealthRulesOfArgoCD(t *testing.T) {
	const prefix = "resource.customizations.health.authentication.gardener.cloud_"
	rules := map[string]string{}
	for _, page := range []string{"identities-from-git.md", "with-other-tools.md"} {
		text := string(testkit.Need(os.ReadFile("../../docs/howto/" + page))(t))
		for _, block := range regexp.MustCompile("(?s)```yaml\n(data:\n.*?)```").FindAllStringSubmatch(text, -1) {
			var config struct{ Data map[string]string }
			testkit.Must(t, yaml.Unmarshal([]byte(block[1]), &config))
			for name, rule := range config.Data {
				rules[strings.TrimPrefix(name, prefix)] = rule
			}
		}
	}
	for kind, cases := range map[string]map[string]string{
		"WorkloadIdentity":   {``: "Progressing", `{type = "Ready", status = "True"}`: "Healthy", `{type = "Ready", status = "False", message = "m"}`: "Degraded", `{type = "Delivered", status = "False"}`: "Progressing"},
		"CredentialsBinding": {``: "Healthy", `{type = "Ready", status = "True"}`: "Healthy", `{type = "Ready", status = "False", reason = "NotFound"}`: "Progressing", `{type = "Ready", status = "False", reason = "OtherAccount"}`: "Degraded"},
	} {
		if rules[kind] == "" {
			t.Fatalf("the documents have no rule for %s: %v", kind, rules)
		}
		for condition, want := range cases {
			state := lua.NewState()
			testkit.Must(t, state.DoString(`obj = {status = {conditions = {`+condition+`}}}`))
			testkit.Must(t, state.DoString(rules[kind]), kind)
			if have := lua.LVAsString(state.GetField(state.Get(-1), "status")); have != want {
				t.Errorf("a %s with the condition %s is %s, want %s", kind, condition, have, want)
			}
			state.Close()
		}
	}
	// An object that was made a moment ago has no status.
	state := lua.NewState()
	defer state.Close()
	testkit.Must(t, state.DoString(`obj = {}`))
	for kind, rule := range rules {
		testkit.Expect(t, state.DoString(rule), kind)
	}
}
