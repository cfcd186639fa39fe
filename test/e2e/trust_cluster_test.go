package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A relying party that is configured by "credence trust" lets in one account of one cluster, and no namesake of another.
func TestPlaneTrustOfOneCluster(t *testing.T) {
	withCluster(t)
	namespace := shared.namespace(t)
	east, west := "east-of-"+namespace, "west-of-"+namespace
	for _, name := range []string{east, west} {
		shared.joinCluster(t, name, []string{name}, []string{namespace})
		shared.bind(t, namespace, "credence:agent:identities", user(name))
	}
	// One identity is for an account of east, one for an account of this cluster, one for all.
	subjects := map[string]string{}
	for _, name := range []string{"joined", "own", "all"} {
		subjects[name] = shared.create(t, namespace, name, "generic", "second-cluster").Status.Sub
	}
	own := need(shared.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{}))(t)
	shared.letUse(t, namespace, "system:serviceaccount:"+namespace+":cart")

	for system, hint := range map[string]string{"kubernetes": "unless --cluster NAME lets in one", "alicloud": "alicloud does not distinguish clusters"} {
		_, note, _ := shared.command(t, "", "credence", "trust", system, "-n", namespace, "all")
		if !strings.Contains(note, "clusters that have joined may have tokens of it, too: "+east+", "+west) || !strings.Contains(note, hint) {
			t.Errorf("trust of every token by %s notes %q", system, note)
		}
	}
	configuration := map[string]any{}
	var rules []any
	for _, args := range [][]string{{"joined", "--cluster", east, "--account", namespace + "/cart"}, {"own", "--account", namespace + "/cart"}} {
		var note string
		configuration, note = trusted(t, namespace, args...)
		if strings.Contains(note, "clusters that have joined") {
			t.Errorf("trust %v notes %q", args, note)
		}
		rules = append(rules, configuration["jwt"].([]any)[0].(map[string]any)["claimValidationRules"].([]any)...)
	}
	cluster := trusting(t, configuration, rules)

	account := func(name, uid string) string {
		return fmt.Sprintf(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":%q,"namespace":%q,"uid":%q}}`, name, namespace, uid)
	}
	admin := shared.config(t)
	for what, test := range map[string]struct {
		caller         *rest.Config
		identity, spec string
		taken          bool
	}{
		"the account of east":                {shared.as(t, east), "joined", account("cart", "u"), true},
		"its namesake of west":               {shared.as(t, west), "joined", account("cart", "u"), false},
		"its namesake of this cluster":       {admin, "joined", account("cart", string(own.UID)), false},
		"another account of east":            {shared.as(t, east), "joined", account("till", "u"), false},
		"east, without an account":           {shared.as(t, east), "joined", `{}`, false},
		"a person":                           {admin, "joined", `{}`, false},
		"the account of this cluster":        {admin, "own", account("cart", string(own.UID)), true},
		"a namesake, asserted by east":       {shared.as(t, east), "own", account("cart", string(own.UID)), false},
		"an identity that no rule is about":  {admin, "all", `{}`, true},
		"the same, of a cluster that joined": {shared.as(t, west), "all", account("cart", "u"), true},
	} {
		var issued string
		eventually(t, func() error {
			got := do(t, test.caller, "POST", tokenPath(namespace, test.identity), "application/json", tokenRequest(test.spec))
			if got.Code != 201 {
				return fmt.Errorf("%s: %d %s", what, got.Code, got.Body)
			}
			issued = decodeTokenRequest(t, got).Status.Token
			_, c := claims(t, issued)
			seed, _ := c["gardener.cloud"].(map[string]any)["seed"].(map[string]any)
			if joined := test.caller != admin; joined != (seed != nil) {
				return fmt.Errorf("%s: the claim seed is %v", what, seed)
			}
			return nil
		})
		if !test.taken {
			if name, err := whoami(t, cluster, issued); err == nil {
				t.Errorf("%s is let in as %s", what, name)
			}
			continue
		}
		// The keys of the issuer are fetched at the first token.
		eventually(t, func() error {
			name, err := whoami(t, cluster, issued)
			if err != nil || name != "credence:"+subjects[test.identity] {
				return fmt.Errorf("%s is %q: %w", what, name, err)
			}
			return nil
		})
	}
}

// trusted is the file by which a kube-apiserver trusts identities, as "credence trust" has it, and the notes of that.
func trusted(t *testing.T, namespace string, args ...string) (configuration map[string]any, note string) {
	t.Helper()
	text, note, _ := shared.command(t, "", "credence", append([]string{"trust", "kubernetes", "-n", namespace, "-o", "terraform", "--provider"}, args...)...)
	// The lines of the file are a list of strings.
	_, list, _ := strings.Cut(text, "join(\"\\n\", ")
	list, _, _ = strings.Cut(list, ",\n    \"\",\n  ])")
	var lines []string
	if err := yaml.Unmarshal([]byte(list+"]"), &lines); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	must(t, yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &configuration))
	return configuration, note
}

// trusting starts a cluster with such a file, with these rules in place of its own.
func trusting(t *testing.T, configuration map[string]any, rules []any) *rest.Config {
	t.Helper()
	entry := configuration["jwt"].([]any)[0].(map[string]any)
	entry["claimValidationRules"] = rules
	ca := need(os.ReadFile(shared.CAFile))(t)
	entry["issuer"].(map[string]any)["certificateAuthority"] = string(ca)
	content := need(yaml.Marshal(configuration))(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "trust.yaml")
	must(t, os.WriteFile(file, content, 0o600))
	return startCluster(t, filepath.Join(dir, "cluster"), "--port", "0", "--authentication-config", file).Admin
}
