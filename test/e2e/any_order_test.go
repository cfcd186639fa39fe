package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// Each reference between kinds of Credence may be applied before its object: tools sort kinds that they do not know by name. The object
// is checked once it is used. Tools begin with a dry run, and so do these.
func TestReferencesBeforeTheirObjects(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/workload-identities=enabled", "identity.credence.dev/profiles=enabled", "identity.credence.dev/quotas=enabled")
	metadata := func(name string) string { return fmt.Sprintf(`"metadata":{"name":%q,"namespace":%q}`, name, namespace) }
	for name, manifest := range map[string]string{
		"a binding to an identity":          `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding",` + metadata("a") + `,"provider":{"type":"aws"},"workloadIdentityRef":{"name":"absent"}}`,
		"a binding to a Secret":             `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding",` + metadata("b") + `,"provider":{"type":"aws"},"secretRef":{"name":"absent"}}`,
		"a binding with a Quota":            `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding",` + metadata("c") + `,"provider":{"type":"aws"},"secretRef":{"name":"absent"},"quotas":[{"name":"absent"}]}`,
		"an account with an identity":       strings.Replace(`{"apiVersion":"v1","kind":"ServiceAccount",`+metadata("a")+`}`, `"namespace"`, `"annotations":{"identity.credence.dev/workload-identities":"absent"},"namespace"`, 1),
		"a profile with an identity":        `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile",` + metadata("a") + `,"spec":{"workloadIdentities":["absent"]}}`,
		"a profile with a template":         `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile",` + metadata("b") + `,"spec":{"securityContext":{"templateRef":{"name":"absent"}}}}`,
		"a Secret with tokens":              strings.Replace(`{"apiVersion":"v1","kind":"Secret",`+metadata("a")+`}`, `"namespace"`, `"labels":{"authentication.gardener.cloud/purpose":"workload-identity-token-requestor"},"annotations":{"workloadidentity.authentication.gardener.cloud/name":"absent","workloadidentity.authentication.gardener.cloud/namespace":"`+namespace+`"},"namespace"`, 1),
		"a Secret by a binding":             strings.Replace(`{"apiVersion":"v1","kind":"Secret",`+metadata("b")+`}`, `"namespace"`, `"labels":{"authentication.gardener.cloud/purpose":"workload-identity-token-requestor"},"annotations":{"workloadidentity.authentication.gardener.cloud/binding":"absent","workloadidentity.authentication.gardener.cloud/namespace":"`+namespace+`"},"namespace"`, 1),
		"a namespace template with a role":  `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"NamespaceTemplate","metadata":{"name":"dry"},"spec":{"namespaceSelector":{"matchLabels":{"kind":"absent"}},"roleBindings":[{"name":"a","clusterRole":"credence:accounts:absent","groups":["a"]}]}}`,
		"a workload cluster with users":     `{"apiVersion":"identity.credence.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"dry"},"spec":{"users":["system:serviceaccount:workload-clusters:absent-agent"],"identities":{"namespaces":["absent"]}}}`,
		"a context kind of an absent API":   `{"apiVersion":"identity.credence.dev/v1alpha1","kind":"ContextKind","metadata":{"name":"things.absent.example.com"},"spec":{"object":{"group":"absent.example.com","version":"v1","resource":"things","kind":"Thing"},"claim":"thing","references":[{"name":"a","workloadIdentities":"[object.spec.identity]"}]}}`,
		"a workload with an absent account": `{"apiVersion":"apps/v1","kind":"Deployment",` + metadata("a") + `,"spec":{"selector":{"matchLabels":{"a":"a"}},"template":{"metadata":{"labels":{"a":"a"}},"spec":{"serviceAccountName":"absent","containers":[{"name":"a","image":"a"}]}}}}`,
	} {
		for _, way := range [][]string{{"create"}, {"apply", "--server-side"}} {
			if out, stderr, code := shared.command(t, manifest, "kubectl", append(way, "--dry-run=server", "-f", "-")...); code != 0 {
				t.Errorf("%s, %s: %s%s", name, way, out, stderr)
			}
		}
	}
}
