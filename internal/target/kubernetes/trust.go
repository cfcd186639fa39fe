package kubernetes

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/trust"
)

// userPrefix keeps identities from being taken for users of the cluster's own.
const userPrefix = "credence:"

// accountPrefix keeps service accounts from being taken for users of the cluster's own, or for identities.
const accountPrefix = userPrefix + "account:"

// usernameClaim is the claim with the username of a service account.
const usernameClaim = `claims["identity.credence.dev"].username`

// userOf is the user that the cluster knows an identity as, or the service account in whose name its tokens are.
func userOf(i trust.Identity) string {
	if i.Username != "" {
		return accountPrefix + i.Username
	}
	return userPrefix + i.Subject
}

// authenticationConfiguration is the file of kube-apiserver's --authentication-config. Kubernetes 1.33 has it as v1beta1 alone.
func authenticationConfiguration(i trust.Identity) string {
	issuer := map[string]any{"url": i.Issuer, "audiences": i.Audiences}
	if len(i.Audiences) > 1 {
		issuer["audienceMatchPolicy"] = "MatchAny"
	}
	jwt := map[string]any{
		"issuer":        issuer,
		"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": userPrefix}},
	}
	if i.Username != "" {
		// A token without the claim is refused, as the expression can't be evaluated.
		jwt["claimMappings"] = map[string]any{"username": map[string]any{"expression": fmt.Sprintf("%q + %s", accountPrefix, usernameClaim)}}
		jwt["claimValidationRules"] = []any{usernameRule(i.Username)}
	}
	if i.Bearer != (trust.Bearer{}) {
		jwt["claimValidationRules"] = []any{map[string]any{
			"expression": i.Condition("claims"), "message": "of the tokens of " + i.Namespace + "/" + i.Name + " only those of " + i.Bearer.String() + " are taken",
		}}
	}
	return yamlText(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"jwt":        []any{jwt},
	})
}

// usernameRule has the cluster take names of one cluster alone: the prefix does not distinguish issuers, and another issuer that is trusted
// by it could give names of this one. Where a name has no part that stands for its cluster, it is the only one that is taken.
func usernameRule(name string) map[string]any {
	const start = "@" + username.DefaultHost
	if _, cluster, found := strings.Cut(name, start); found {
		return map[string]any{"expression": fmt.Sprintf("%s.endsWith(%q)", usernameClaim, start+cluster), "message": "only service accounts of cluster " + cluster + " have such tokens"}
	}
	return map[string]any{"expression": fmt.Sprintf("%s == %q", usernameClaim, name), "message": "only " + name + " has such tokens"}
}

// roleBinding grants the ClusterRole view in one namespace to exactly one user.
func roleBinding(i trust.Identity) string {
	return yamlText(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind":       "RoleBinding",
		"metadata":   map[string]any{"name": bindingName(i), "namespace": bindingNamespace(i)},
		"roleRef":    map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
		"subjects":   []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": userOf(i)}},
	})
}

func bindingName(i trust.Identity) string { return trust.Cut("credence:"+i.Namespace+":"+i.Name, 200) }

// bindingNamespace is the namespace that the identity's own kubeconfig is for. A providerConfig of a type without an adapter may name one in
// the same field.
func bindingNamespace(i trust.Identity) string {
	if config, err := strictjson.Object(i.ProviderConfig); err == nil {
		if name, _ := strictjson.Text(config["namespace"]); isNamespace(name) {
			return name
		}
	}
	return "default"
}

func yamlText(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // maps and slices of strings and bytes always have a YAML form
	}
	return string(text)
}

func writeCommands(i trust.Identity) (string, error) {
	return fmt.Sprintf(`# For kube-apiserver: --authentication-config=credence-trust.yaml (Kubernetes 1.33: apiVersion v1beta1). Where such a file exists, add the
# entry to its list jwt. An issuer whose certificate is of an authority of your own needs issuer.certificateAuthority too.
%s
# For an admin of that cluster: choose what the identity may do, and where. This lets it look at namespace %s.
%s`, toFile(authenticationConfiguration(i), "cat > credence-trust.yaml"), bindingNamespace(i), toFile(roleBinding(i), "kubectl apply -f -")), nil
}

// toFile gives a text to a command as its standard input, quoted.
func toFile(text, command string) string {
	return "printf '%s\\n' " + trust.Shell(strings.TrimSuffix(text, "\n")) + " |\n  " + command + "\n"
}

func writeProvider(i trust.Identity) (string, error) {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(authenticationConfiguration(i), "\n"), "\n") {
		lines = append(lines, "    "+trust.HCL(line)+",\n")
	}
	return "# For kube-apiserver: --authentication-config (Kubernetes 1.33: apiVersion v1beta1). Where such a file exists, add the entry to its list jwt.\n" +
		trust.Block("resource", []string{"local_file", i.SharedName("")}, trust.Member{"filename", "credence-trust.yaml"},
			trust.Member{"content", trust.Reference("join(\"\\n\", [\n" + strings.Join(lines, "") + "    \"\",\n  ])")}), nil
}

func writeTerraform(i trust.Identity) (string, error) {
	name := i.ResourceName()
	text := "# The cluster knows the issuer already: --provider prints the file for that.\n"
	if i.Bearer != (trust.Bearer{}) {
		text = "# The cluster takes no other tokens of the identity, by a rule of the file that --provider prints for it.\n"
	}
	return text +
		"# Choose what the identity may do, and where. This lets it look at one namespace.\n" +
		trust.Block("resource", []string{"kubernetes_role_binding_v1", name},
			trust.Member{"metadata", trust.Nested{{"name", bindingName(i)}, {"namespace", bindingNamespace(i)}}},
			trust.Member{"role_ref", trust.Nested{{"api_group", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "view"}}},
			trust.Member{"subject", trust.Nested{{"api_group", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", userOf(i)}}}), nil
}
