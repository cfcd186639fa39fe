package sdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/trust"
	"github.com/credence-id/credence/test/testkit"
)

// module is the blocks of the files of one folder, by address, such as data.aws_iam_openid_connect_provider.x.
type module map[string]*hclsyntax.Body

// add reads one more file into the module. A block that is in it twice, or in another file, is an error.
func (m module) add(t *testing.T, name, text string) {
	t.Helper()
	file, problems := hclparse.NewParser().ParseHCL([]byte(text), name)
	if problems.HasErrors() {
		t.Fatalf("%v:\n%s", problems, text)
	}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		address := strings.Join(append([]string{block.Type}, block.Labels...), ".")
		switch block.Type {
		case "resource":
			address = strings.TrimPrefix(address, "resource.")
		case "variable":
			address = "var." + block.Labels[0]
		}
		if _, twice := m[address]; twice {
			t.Errorf("%s: %s stands in the module twice", name, address)
		}
		m[address] = block.Body
	}
}

// checkReferences fails the test for each reference to what the module does not have.
func (m module) checkReferences(t *testing.T) {
	t.Helper()
	for address, body := range m {
		for _, traversal := range references(body) {
			var parts []string
			for _, step := range traversal {
				switch step := step.(type) {
				case hcl.TraverseRoot:
					parts = append(parts, step.Name)
				case hcl.TraverseAttr:
					parts = append(parts, step.Name)
				}
			}
			length := map[string]int{"data": 3}[parts[0]]
			if length == 0 {
				length = 2
			}
			// A variable's type is a word, not a reference.
			if strings.HasPrefix(address, "var.") {
				continue
			}
			if referred := strings.Join(parts[:min(length, len(parts))], "."); m[referred] == nil {
				t.Errorf("%s refers to %s, which the module does not have", address, referred)
			}
		}
	}
}

// arguments are what a provider publishes for one kind of resource: names of attributes and of blocks.
type arguments struct{ Required, Optional []string }

// checkArguments compares the arguments of all resources with those that their providers publish. testdata/providers.json has them, with the
// version of each provider. Data sources are refused: they make plans unknown until apply.
func (m module) checkArguments(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile("testdata/providers.json")
	if err != nil {
		t.Fatal(err)
	}
	var published map[string]arguments
	if err := json.Unmarshal(content, &published); err != nil {
		t.Fatal(err)
	}
	for address, body := range m {
		kind, _, _ := strings.Cut(address, ".")
		known, found := published[kind]
		if kind == "var" {
			continue
		}
		if !found {
			t.Errorf("%s: the arguments of %s are not in testdata/providers.json", address, kind)
			continue
		}
		given := slices.Collect(maps.Keys(body.Attributes))
		for _, block := range body.Blocks {
			given = append(given, block.Type)
		}
		for _, name := range given {
			if !slices.Contains(known.Required, name) && !slices.Contains(known.Optional, name) {
				t.Errorf("%s has the argument %s, which %s does not have", address, name, kind)
			}
		}
		for _, name := range known.Required {
			if !slices.Contains(given, name) {
				t.Errorf("%s lacks the argument %s, which %s requires", address, name, kind)
			}
		}
	}
}

func references(body *hclsyntax.Body) []hcl.Traversal {
	var all []hcl.Traversal
	for _, attribute := range body.Attributes {
		all = append(all, attribute.Expr.Variables()...)
	}
	for _, block := range body.Blocks {
		all = append(all, references(block.Body)...)
	}
	return all
}

// Of identities of an issuer with different audiences, the Terraform is one configuration, and so is what they share, which stands in it
// once, with the audiences of them all.
func TestTerraform(t *testing.T) {
	systems := map[string]string{"kubernetes": "", "vault": ""}
	for _, c := range []cloud{awsCloud(), azureCloud(), googleCloud(), alibabaCloud()} {
		systems[c.name] = c.providerConfig
	}
	direct := strings.Replace(googleCloud().providerConfig, `,"serviceAccount":"`+googleAccount+`"`, "", 1)
	for _, system := range targets.Trusting() {
		t.Run(system, func(t *testing.T) {
			identities, all := module{}, []trust.Identity(nil)
			for n, workload := range []issuer.Identity{{Namespace: "shop", Name: "cart"}, {Namespace: "shop", Name: "till"}, {Namespace: "shop.a", Name: "cart"}} {
				i := trust.Identity{
					Namespace: workload.Namespace, Name: workload.Name, Type: system, Issuer: issuerURL, Audiences: []string{fmt.Sprintf("audience-%d", n)},
					Subject:        "gardener.cloud:workloadidentity:" + workload.Namespace + ":" + workload.Name + ":12b580fe",
					ProviderConfig: []byte(strings.Replace(systems[system], "role/cart", "role/"+workload.Name, 1)),
				}
				if system == "vault" {
					i.Type = "generic"
				}
				if system == "gcp" && workload.Name == "till" {
					i.ProviderConfig = []byte(direct)
				}
				text := testkit.Need(targets.WriteTrust(system, trust.Terraform, i))(t)
				if !strings.Contains(text, i.Subject) {
					t.Errorf("nothing names the subject %s:\n%s", i.Subject, text)
				}
				identities.add(t, workload.Namespace+"-"+workload.Name, text)
				all = append(all, i)
			}
			identities.checkReferences(t)
			identities.checkArguments(t)
			if system == "azure" {
				return // where identities share nothing
			}
			text := testkit.Need(targets.WriteTrust(system, trust.Provider, all[0], all[1:]...))(t)
			for n := range all {
				if audience := fmt.Sprintf("audience-%d", n); system != "vault" && !strings.Contains(text, audience) { // there, roles have audiences
					t.Errorf("what all share lacks %s:\n%s", audience, text)
				}
			}
			shared := module{}
			shared.add(t, "shared", text)
			shared.checkReferences(t)
			shared.checkArguments(t)
			// In one folder, too.
			identities.add(t, "shared", text)
		})
	}
}

// The policy of a role in Terraform is the one of the commands, and is known without the provider.
func TestTerraformPolicy(t *testing.T) {
	i := trust.Identity{
		Namespace: "shop", Name: "cart", Type: "aws", Issuer: issuerURL, Audiences: []string{"one", `${x}"`}, Subject: "gardener.cloud:workloadidentity:shop:cart:12b580fe",
		ProviderConfig: []byte(awsCloud().providerConfig),
	}
	text := testkit.Need(targets.WriteTrust("aws", trust.Terraform, i))(t)
	configuration := module{}
	configuration.add(t, "cart", text)
	const provider = "arn:aws:iam::112233445566:oidc-provider/identity.example.com/shop"
	for address, body := range configuration {
		if !strings.HasPrefix(address, "aws_iam_role.") {
			continue
		}
		policy, problems := body.Attributes["assume_role_policy"].Expr.Value(&hcl.EvalContext{
			Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc},
		})
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		var read struct {
			Statement []struct {
				Principal struct{ Federated string }
				Condition struct{ StringEquals map[string]any }
			}
		}
		if err := json.Unmarshal([]byte(policy.AsString()), &read); err != nil || len(read.Statement) != 1 {
			t.Fatalf("%v: %s", err, policy.AsString())
		}
		statement := read.Statement[0]
		audiences, _ := statement.Condition.StringEquals["identity.example.com/shop:aud"].([]any)
		if statement.Principal.Federated != provider || statement.Condition.StringEquals["identity.example.com/shop:sub"] != i.Subject || !slices.Equal(audiences, []any{"one", `${$}{x}"`}) {
			t.Errorf("policy %s", policy.AsString())
		}
	}
}
