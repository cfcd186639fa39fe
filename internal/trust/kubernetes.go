package trust

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// userPrefix keeps identities from being taken for users of the cluster's own.
const userPrefix = "credence:"

// authenticationConfiguration is the file of kube-apiserver's --authentication-config (Kubernetes 1.34 and later).
func authenticationConfiguration(i Identity) string {
	issuer := map[string]any{"url": i.Issuer, "audiences": i.Audiences}
	if len(i.Audiences) > 1 {
		issuer["audienceMatchPolicy"] = "MatchAny"
	}
	return yamlText(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer":        issuer,
			"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": userPrefix}},
		}},
	})
}

// roleBinding grants the ClusterRole view in one namespace to exactly one user.
func roleBinding(i Identity) string {
	return yamlText(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind":       "RoleBinding",
		"metadata":   map[string]any{"name": bindingName(i), "namespace": bindingNamespace(i)},
		"roleRef":    map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
		"subjects":   []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": userPrefix + i.Subject}},
	})
}

func bindingName(i Identity) string { return cut("credence:"+i.Namespace+":"+i.Name, 200) }

// bindingNamespace is the namespace that the identity's own kubeconfig is for.
func bindingNamespace(i Identity) string {
	if namespace := i.fields()["namespace"]; len(validation.IsDNS1123Label(namespace)) == 0 {
		return namespace
	}
	return "default"
}

func yamlText(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // maps and slices of strings always have a YAML form
	}
	return string(text)
}

func kubernetesCommands(i Identity) (string, error) {
	return fmt.Sprintf(`# For kube-apiserver, Kubernetes 1.34 or later: --authentication-config=credence-trust.yaml. Where such a file exists, add the
# entry to its list jwt. An issuer whose certificate is of an authority of your own needs issuer.certificateAuthority too.
%s
# In that cluster: choose what the identity may do, and where. This lets it look at namespace %s.
%s`, toFile(authenticationConfiguration(i), "cat > credence-trust.yaml"), bindingNamespace(i), toFile(roleBinding(i), "kubectl apply -f -")), nil
}

// toFile gives a text to a command as its standard input, quoted.
func toFile(text, command string) string {
	return "printf '%s\\n' " + shell(strings.TrimSuffix(text, "\n")) + " |\n  " + command + "\n"
}

func kubernetesProvider(i Identity) (string, error) {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(authenticationConfiguration(i), "\n"), "\n") {
		lines = append(lines, "    "+hcl(line)+",\n")
	}
	return "# For kube-apiserver, Kubernetes 1.34 or later: --authentication-config. Where such a file exists, add the entry to its list jwt.\n" +
		block("resource", []string{"local_file", i.sharedName("")}, member{"filename", "credence-trust.yaml"},
			member{"content", reference("join(\"\\n\", [\n" + strings.Join(lines, "") + "    \"\",\n  ])")}), nil
}

func kubernetesTerraform(i Identity) (string, error) {
	name := i.resourceName()
	return "# The cluster knows the issuer already: --provider prints the file for that.\n" +
		"# Choose what the identity may do, and where. This lets it look at one namespace.\n" +
		block("resource", []string{"kubernetes_role_binding_v1", name},
			member{"metadata", nested{{"name", bindingName(i)}, {"namespace", bindingNamespace(i)}}},
			member{"role_ref", nested{{"api_group", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "view"}}},
			member{"subject", nested{{"api_group", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", userPrefix + i.Subject}}}), nil
}
