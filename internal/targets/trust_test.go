package targets_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/trust"
	"github.com/credence-id/credence/test/testkit"
)

const (
	testIssuer  = "https://identity.example.com/team"
	testSubject = "gardener.cloud:workloadidentity:my-team:my.app:0b2f8a3e-4f0e-4f0c-9a47-000000000001"
	exampleID   = "11111111-2222-3333-4444-555555555555"
)

func configs() map[string]string {
	configs := map[string]string{
		"aws":        `"iamRoleARN":"arn:aws-cn:iam::123456789012:role/a/path/my-role"`,
		"azure":      `"clientID":"` + exampleID + `","tenantID":"` + exampleID + `","subscriptionID":"` + exampleID + `"`,
		"gcp":        `"projectID":"my-project","workloadIdentityPoolProvider":"projects/123/locations/global/workloadIdentityPools/my-pool/providers/my-provider","serviceAccount":"runner@my-project.iam.gserviceaccount.com"`,
		"alicloud":   `"roleARN":"acs:ram::12345:role/my-role","oidcProviderARN":"acs:ram::12345:oidc-provider/credence"`,
		"kubernetes": `"server":"https://api.example.com"`,
	}
	for system, fields := range configs {
		configs[system] = config(system, fields)
	}
	return configs
}

// config is a providerConfig with fields.
func config(system, fields string) string {
	return `{"apiVersion":"` + system + `.authentication.gardener.cloud/v1alpha1","kind":"Config",` + fields + `}`
}

func testIdentity(system string, audiences ...string) trust.Identity {
	i := trust.Identity{
		Namespace: "my-team", Name: "my.app", Type: system, Issuer: testIssuer, Subject: testSubject,
		Audiences: audiences, ProviderConfig: []byte(configs()[system]),
	}
	if system == "vault" {
		i.Type = "generic"
	}
	return i
}

// hostile are audiences that the API allows, each of which would do harm where it is not quoted.
func hostile() []string {
	return []string{
		`'; touch pwned; '`, `$(touch pwned)`, "`touch pwned`", `"; touch pwned; "`, `\`, `\'`, `${file("/etc/passwd")}`, `%{ if true }`,
		`$${x}`, `a"}],"Action":"*`, `</script>&`, `file:///etc/passwd`, `{"a":1}`, `: - # yaml`, `!!binary x`, `*`, `ünïcode`, `'\''`, `$`, `%`, `EOF`,
	}
}

// run executes commands with programs that record their arguments and standard input, and returns those.
func run(t *testing.T, commands string) (calls [][]string, folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, program := range []string{"aws", "az", "gcloud", "aliyun", "vault", "kubectl"} {
		script := "#!/bin/sh\n{ printf '%s\\0' \"$0\" \"$@\"; for last; do :; done; if [ \"$last\" = - ]; then cat; fi; printf '\\0\\0'; } >> \"$CALLS\"\n[ \"$1\" = identity ] && echo found\nexit 0\n"
		testkit.Must(t, os.WriteFile(filepath.Join(folder, program), []byte(script), 0o700))
	}
	shell := exec.Command("/bin/sh", "-eu", "-c", commands)
	record := filepath.Join(folder, "calls")
	shell.Dir, shell.Env = folder, []string{"PATH=" + folder + ":/usr/bin:/bin", "CALLS=" + record, "FINGERPRINT=f", "ROLE=roles/viewer"}
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, output, commands)
	}
	text := testkit.Need(os.ReadFile(record))(t)
	for call := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\x00\x00")), []byte("\x00\x00")) {
		calls = append(calls, strings.Split(string(call), "\x00"))
	}
	if _, err := os.Stat(filepath.Join(folder, "pwned")); err == nil {
		t.Errorf("an audience was executed:\n%s", commands)
	}
	return calls, folder
}

// value returns the argument of an option in any call.
func value(t *testing.T, calls [][]string, option string) string {
	t.Helper()
	for _, call := range calls {
		for i, argument := range call {
			if text, ok := strings.CutPrefix(argument, option+"="); ok {
				return text
			}
			if argument == option && i+1 < len(call) {
				return call[i+1]
			}
		}
	}
	t.Fatalf("no call has the option %s: %q", option, calls)
	return ""
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func TestCommandsArriveByteForByte(t *testing.T) {
	tried := []string{"alicloud"}
	for _, audience := range hostile() {
		t.Run(audience, func(t *testing.T) {
			written := func(system string) ([][]string, string) {
				tried = append(tried, system)
				text := testkit.Need(targets.WriteTrust(system, trust.Commands, testIdentity(system, audience)))(t)
				return run(t, text)
			}
			calls, _ := written("aws")
			var provider struct {
				URL          string   `json:"Url"`
				ClientIDList []string `json:"ClientIDList"`
			}
			read(t, value(t, calls, "--cli-input-json"), &provider)
			if diff := cmp.Diff([]string{testIssuer, audience}, append([]string{provider.URL}, provider.ClientIDList...)); diff != "" {
				t.Errorf("aws: %s", diff)
			}
			policy := value(t, calls, "--assume-role-policy-document")
			conditions := conditionsOf(t, policy)["StringEquals"]
			issuer := strings.TrimPrefix(testIssuer, "https://")
			if got := strings.ReplaceAll(conditions[issuer+":aud"][0], "${$}", "$"); got != audience || conditions[issuer+":sub"][0] != testSubject {
				t.Errorf("aws: conditions %v", conditions)
			}
			if strings.Contains(strings.ReplaceAll(policy, "${$}", ""), "${") {
				t.Errorf("aws: IAM takes a value for a variable: %s", policy)
			}

			calls, _ = written("azure")
			if got := value(t, calls, "--audiences"); got != audience {
				t.Errorf("azure: audience %q", got)
			}

			calls, _ = written("gcp")
			if got := gcloudValues(value(t, calls, "--allowed-audiences")); !cmp.Equal(got, []string{audience}) {
				t.Errorf("gcp: audiences %q", got)
			}

			calls, _ = written("vault")
			var role struct {
				BoundAudiences []string `json:"bound_audiences"`
				BoundSubject   string   `json:"bound_subject"`
			}
			if err := json.Unmarshal([]byte(calls[2][4]), &role); err != nil {
				t.Fatalf("%v: %q", err, calls)
			}
			if !cmp.Equal(role.BoundAudiences, []string{audience}) || role.BoundSubject != testSubject {
				t.Errorf("vault: %+v", role)
			}

			_, folder := written("kubernetes")
			file, err := os.ReadFile(filepath.Join(folder, "credence-trust.yaml"))
			testkit.Must(t, err)
			var configuration struct {
				APIVersion, Kind string
				JWT              []struct {
					Issuer        struct{ Audiences []string }
					ClaimMappings map[string]map[string]string
				}
			}
			if err := yaml.Unmarshal(file, &configuration); err != nil || !cmp.Equal(configuration.JWT[0].Issuer.Audiences, []string{audience}) {
				t.Errorf("kubernetes: %v: %s", err, file)
			}

			text, err := targets.WriteTrust("alicloud", trust.Commands, testIdentity("alicloud", audience))
			if err != nil {
				return // refused: RAM would take it for something else
			}
			calls, _ = run(t, text)
			if got := value(t, calls, "--ClientIds"); got != audience {
				t.Errorf("alicloud: client IDs %q", got)
			}
			if got := conditionsOf(t, value(t, calls, "--AssumeRolePolicyDocument"))["StringEquals"]; got["oidc:sub"][0] != testSubject || got["oidc:aud"][0] != audience {
				t.Errorf("alicloud: conditions %v", got)
			}
		})
	}
	slices.Sort(tried)
	if diff := cmp.Diff(targets.Trusting(), slices.Compact(tried)); diff != "" {
		t.Errorf("systems (-all +tried):\n%s", diff)
	}
}

func conditionsOf(t *testing.T, policy string) map[string]map[string][]string {
	t.Helper()
	var document struct {
		Statement []struct{ Condition map[string]map[string]any }
	}
	if err := json.Unmarshal([]byte(policy), &document); err != nil || len(document.Statement) != 1 {
		t.Fatalf("%v: %s", err, policy)
	}
	conditions := map[string]map[string][]string{}
	for operator, keys := range document.Statement[0].Condition {
		conditions[operator] = map[string][]string{}
		for key, value := range keys {
			switch v := value.(type) {
			case string:
				conditions[operator][key] = []string{v}
			case []any:
				for _, one := range v {
					conditions[operator][key] = append(conditions[operator][key], one.(string))
				}
			}
		}
	}
	return conditions
}

// gcloudValues reads a list as gcloud does: see gcloud topic escaping.
func gcloudValues(text string) []string {
	separator := ","
	if strings.HasPrefix(text, "^") {
		separator, text, _ = strings.Cut(text[1:], "^")
	}
	return strings.Split(text, separator)
}

// The shared part of identities has the audiences of all of them, whichever is named first.
func TestProviderOfSeveralIdentities(t *testing.T) {
	of := func(system, name string, audiences ...string) trust.Identity {
		i := testIdentity(system, audiences...)
		i.Name, i.Subject = name, "gardener.cloud:workloadidentity:my-team:"+name+":0b2f8a3e"
		return i
	}
	for _, system := range []string{"alicloud", "aws", "gcp", "kubernetes"} {
		text, err := targets.WriteTrust(system, trust.Provider, of(system, "cart", "one", "two"), of(system, "till", "two", "three"))
		if err != nil {
			t.Errorf("%s: %v", system, err)
			continue
		}
		for _, word := range []string{"my-team/cart, my-team/till", "one", "two", "three"} {
			// The lines of comment are one of them.
			if strings.Count(text, word) != 1 {
				t.Errorf("%s: %q stands %d times in\n%s", system, word, strings.Count(text, word), text)
			}
		}
	}
	elsewhere := of("aws", "till", "two")
	elsewhere.ProviderConfig = []byte(config("aws", `"iamRoleARN":"arn:aws-cn:iam::999999999999:role/till"`))
	for name, c := range map[string]struct {
		other trust.Identity
		want  string
	}{
		"another account":  {elsewhere, "my-team/cart and my-team/till have different providers"},
		"another type":     {of("gcp", "till", "two"), "WorkloadIdentity my-team/till: the identity is of type gcp"},
		"without audience": {of("aws", "till"), "WorkloadIdentity my-team/till: it has no audience"},
	} {
		if text, err := targets.WriteTrust("aws", trust.Provider, of("aws", "cart", "one"), c.other); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q; text %s", name, err, c.want, text)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		system string
		change func(*trust.Identity)
		want   string
	}{
		"another cloud":   {"azure", func(i *trust.Identity) { i.Type = "aws" }, "of type aws"},
		"vault for aws":   {"vault", func(i *trust.Identity) { i.Type = "aws" }, "only aws can"},
		"aws for generic": {"aws", func(i *trust.Identity) { i.Type = "generic" }, "only kubernetes or vault can"},
		"no subject":      {"vault", func(i *trust.Identity) { i.Subject = "" }, "no issuer or no sub"},
		"wildcard":        {"vault", func(i *trust.Identity) { i.Subject = "gardener.cloud:*" }, "wildcard"},
		"no audience":     {"vault", func(i *trust.Identity) { i.Audiences = nil }, "no audience"},
		"line break":      {"vault", func(i *trust.Identity) { i.Audiences = []string{"a\nb"} }, "U+000A"},
		"reordering":      {"vault", func(i *trust.Identity) { i.Audiences = []string{"a\u202eb"} }, "U+202E"},
		"http":            {"vault", func(i *trust.Identity) { i.Issuer = "http://x" }, "not an https URL"},
		"no role":         {"aws", func(i *trust.Identity) { i.ProviderConfig = nil }, "an identity of type aws needs one"},
		"line break in role": {"aws", func(i *trust.Identity) {
			i.ProviderConfig = []byte(config("aws", `"iamRoleARN":"arn:aws:iam::123456789012:role/x\n"`))
		}, "iamRoleARN: Invalid value"},
		"store": {"aws", func(i *trust.Identity) {
			i.ProviderConfig = []byte(config("aws", `"iamRoleARN":"arn:minio:iam:::role/x","endpoint":"https://minio.example"`))
		}, "S3-compatible store at https://minio.example"},
		"quote in client": {"azure", func(i *trust.Identity) { i.ProviderConfig = []byte(strings.Replace(configs()["azure"], "111", "'", 1)) }, "clientID: Invalid value"},
		"no subscription": {"azure", func(i *trust.Identity) {
			i.ProviderConfig = []byte(strings.Replace(configs()["azure"], `"subscriptionID":"1`, `"subscriptionID":"x`, 1))
		}, "subscriptionID: Invalid value"},
		"two accounts": {"alicloud", func(i *trust.Identity) {
			i.ProviderConfig = []byte(strings.Replace(configs()["alicloud"], "12345:role", "12346:role", 1))
		}, "in the role's account"},
		"address elsewhere": {"gcp", func(i *trust.Identity) {
			i.ProviderConfig = []byte(strings.Replace(configs()["gcp"], "gserviceaccount.com", "example.com", 1))
		}, "serviceAccount: Invalid value"},
		"number from zero": {"gcp", func(i *trust.Identity) {
			i.ProviderConfig = []byte(strings.Replace(configs()["gcp"], "projects/123", "projects/0123", 1))
		}, "workloadIdentityPoolProvider: Invalid value"},
		"two audiences, azure": {"azure", func(i *trust.Identity) { i.Audiences = []string{"a", "b"} }, "exactly one"},
		"file, azure":          {"azure", func(i *trust.Identity) { i.Audiences = []string{"@/etc/passwd"} }, "-o terraform"},
		"variable, alicloud":   {"alicloud", func(i *trust.Identity) { i.Audiences = []string{"${acs:x}"} }, "for a variable"},
		"long subject, gcp":    {"gcp", func(i *trust.Identity) { i.Subject = strings.Repeat("s", 128) }, "at most 127"},
		"provider of no form": {"gcp", func(i *trust.Identity) {
			i.ProviderConfig = []byte(config("gcp", `"projectID":"my-project","workloadIdentityPoolProvider":"x"`))
		}, "workloadIdentityPoolProvider: Invalid value"},
		"provider config no map": {"gcp", func(i *trust.Identity) { i.ProviderConfig = []byte(`[]`) }, "is not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			i := testIdentity(c.system, "audience")
			c.change(&i)
			text, err := targets.WriteTrust(c.system, trust.Commands, i)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q; text %s", err, c.want, text)
			}
		})
	}
}

// The accepted configurations of a target system and of its trust are the same: there is one check.
func TestWhatTheTargetTakes(t *testing.T) {
	for _, c := range []struct{ system, fields string }{
		{"aws", `"iamRoleARN":"arn:aws-us-gov:iam::123456789012:role/a/b/c+=,.@-_"`},
		{"aws", `"iamRoleARN":"arn:aws-of-tomorrow:iam::123456789012:role/x","region":"eu-central-1"`},
		{"gcp", `"projectID":"my-project","workloadIdentityPoolProvider":"projects/123/locations/global/workloadIdentityPools/my-pool/providers/my-provider","serviceAccount":"112233445566-compute@developer.gserviceaccount.com"`},
		{"gcp", `"projectID":"my-project","workloadIdentityPoolProvider":"projects/123/locations/global/workloadIdentityPools/-pool/providers/gcp-"`},
		{"alicloud", `"roleARN":"acs:ram::12345:role/_x.-","oidcProviderARN":"acs:ram::12345:oidc-provider/x@_.+=,-","region":"cn-hangzhou"`},
	} {
		identity := testIdentity(c.system, "audience")
		identity.ProviderConfig = []byte(config(c.system, c.fields))
		for _, form := range []trust.Form{trust.Commands, trust.Terraform, trust.Provider} {
			if text, err := targets.WriteTrust(c.system, form, identity); err != nil {
				t.Errorf("%s %s, %s: %v\n%s", c.system, c.fields, form, err, text)
			}
		}
	}
}

func TestTypes(t *testing.T) {
	if got := targets.TrustingType("aws"); !slices.Equal(got, []string{"aws"}) {
		t.Errorf("aws: %v", got)
	}
	if got := targets.TrustingType("own"); !slices.Equal(got, []string{"kubernetes", "vault"}) {
		t.Errorf("own: %v", got)
	}
}

// Of the tokens of an identity, a system that can takes those of its bearer alone; a system that can't refuses.
func TestBearers(t *testing.T) {
	const seed = `"seed":{"name":"east","uid":"u"}`
	token := func(subject, gardener, kubernetes string) map[string]any {
		claims := map[string]any{}
		read(t, `{"sub":"`+subject+`","gardener.cloud":{`+gardener+`}`+kubernetes+`}`, &claims)
		return claims
	}
	account := func(name, cluster string) string {
		return `,"kubernetes.io":{"namespace":"shop","serviceaccount":{"name":"` + name + `","uid":"u"}` + cluster + `}`
	}
	ofEast, ofWest := `,"cluster":{"name":"east","uid":"u"}`, `,"cluster":{"name":"west","uid":"u"}`
	tokens := map[string]map[string]any{
		"account of east":      token(testSubject, seed, account("cart", ofEast)),
		"other of east":        token(testSubject, seed, account("till", ofEast)),
		"two clusters":         token(testSubject, seed, account("cart", ofWest)),
		"seed only":            token(testSubject, seed, account("cart", "")),
		"cluster only":         token(testSubject, "", account("cart", ofEast)),
		"east, no account":     token(testSubject, seed, ""),
		"account of west":      token(testSubject, strings.Replace(seed, "east", "west", 1), account("cart", ofWest)),
		"account of its own":   token(testSubject, "", account("cart", "")),
		"no bearer":            token(testSubject, "", ""),
		"without private part": {"sub": testSubject},
		"another identity":     token("gardener.cloud:workloadidentity:a:b:c", "", ""),
	}
	bearers := map[trust.Bearer][]string{
		{Cluster: "east"}: {"account of east", "another identity", "east, no account", "other of east", "seed only", "two clusters"},
		{Cluster: "east", Namespace: "shop", Account: "cart"}: {"account of east", "another identity"},
		{Namespace: "shop", Account: "cart"}:                  {"account of its own", "another identity"},
	}
	for bearer, want := range bearers {
		for _, system := range targets.Trusting() {
			i := testIdentity(system, "audience")
			i.Bearer = bearer
			text, err := targets.WriteTrust(system, trust.Commands, i)
			var variable, condition string
			switch system {
			case "gcp":
				if err != nil {
					t.Fatal(err)
				}
				calls, _ := run(t, text)
				variable, condition = "assertion", value(t, calls, "--attribute-condition")
				provider, err := targets.WriteTrust(system, trust.Provider, i)
				if err != nil || !strings.Contains(provider, "attribute_condition") || !strings.Contains(provider, trust.HCL(condition)) {
					t.Errorf("gcp, %s: %v: Terraform lacks the condition %s:\n%s", bearer, err, condition, provider)
				}
				if terraform, err := targets.WriteTrust(system, trust.Terraform, i); err != nil || !strings.Contains(terraform, "Only the condition of the provider keeps other tokens") {
					t.Errorf("gcp, %s: %v: Terraform is silent about the condition that it needs:\n%s", bearer, err, terraform)
				}
			case "kubernetes":
				if err != nil {
					t.Fatal(err)
				}
				_, folder := run(t, text)
				file, err := os.ReadFile(filepath.Join(folder, "credence-trust.yaml"))
				var configuration struct {
					JWT []struct{ ClaimValidationRules []struct{ Expression string } }
				}
				if err != nil || yaml.Unmarshal(file, &configuration) != nil {
					t.Fatalf("%v: %s", err, file)
				}
				variable, condition = "claims", configuration.JWT[0].ClaimValidationRules[0].Expression
			case "vault":
				if bearer.Cluster == "" {
					if err == nil || !strings.Contains(err.Error(), "can't require that a token has no cluster") {
						t.Errorf("vault, %s: error %v", bearer, err)
					}
					continue
				}
				if err != nil || !strings.Contains(text, `"/gardener.cloud/seed/name": "east"`) || strings.Contains(text, `"/kubernetes.io/cluster/name": "east"`) != (bearer.Account != "") {
					t.Errorf("vault, %s: %v:\n%s", bearer, err, text)
				}
				continue
			default:
				if err == nil || !strings.Contains(err.Error(), "an identity of its own") {
					t.Errorf("%s, %s: error %v, want a refusal with another way; text %s", system, bearer, err, text)
				}
				continue
			}
			if taken := satisfying(t, variable, condition, tokens); !cmp.Equal(taken, want) {
				t.Errorf("%s, %s: %s takes\n%q, want\n%q", system, bearer, condition, taken, want)
			}
		}
	}
}

// satisfying are the names of the tokens for which an expression is true.
func satisfying(t *testing.T, variable, expression string, tokens map[string]map[string]any) (names []string) {
	t.Helper()
	env := testkit.Need(cel.NewEnv(cel.Variable(variable, cel.MapType(cel.StringType, cel.DynType))))(t)
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program := testkit.Need(env.Program(ast))(t)
	for name, claims := range tokens {
		if out, _, err := program.Eval(map[string]any{variable: claims}); err == nil && out.Value() == true {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
