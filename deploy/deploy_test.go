package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/test/testkit"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func clusterRoles(t *testing.T) map[string]*rbacv1.ClusterRole {
	t.Helper()
	objects := testkit.Need(deploy.Manifests())(t)
	roles := map[string]*rbacv1.ClusterRole{}
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, role, true); err != nil {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
		roles[role.Name] = role
	}
	if len(roles) == 0 {
		t.Fatal("no ClusterRole among the manifests")
	}
	return roles
}

// The rights through view, edit and admin must neither mint tokens nor lend identities. To use service accounts is another right, which
// these roles have by making pods anyway. A policy narrows what admin may write into profiles.
func TestAggregatedRolesNeitherCreateTokensNorUse(t *testing.T) {
	aggregated := 0
	for name, role := range clusterRoles(t) {
		if !slices.ContainsFunc(mapKeys(role.Labels), func(k string) bool {
			return strings.HasPrefix(k, "rbac.authorization.k8s.io/aggregate-to-")
		}) {
			continue
		}
		aggregated++
		for _, rule := range role.Rules {
			if accounts := []string{"serviceaccounts"}; strings.HasPrefix(name, "credence:serviceaccounts:") && slices.Equal(rule.Resources, accounts) && slices.Equal(rule.Verbs, []string{"use"}) {
				continue
			}
			for _, resource := range rule.Resources {
				if resource == "quotas" && strings.HasSuffix(name, ":view") {
					continue // who writes a binding reads those that it lists, and raises no limit
				}
				if !slices.Contains([]string{"workloadidentities", "credentialsbindings"}, resource) && !slices.Equal(rule.APIGroups, []string{"accounts.credence.dev"}) {
					t.Errorf("ClusterRole %s gives people rights on %s", name, resource)
				}
			}
			if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains([]string{"use", "assert", "*"}, verb) }) {
				t.Errorf("ClusterRole %s gives people the verbs %v", name, rule.Verbs)
			}
		}
	}
	if aggregated != 6 {
		t.Errorf("found %d aggregated ClusterRoles, want 6", aggregated)
	}
}

// roleBindings are the rights of the binder, and those of the agent to see its own and to delete both: verbs, resources and names. The
// policy credence-binder narrows what is created.
var roleBindings = map[string][][]string{
	"credence:binder": {
		{"create", "rolebindings"},
		{"list", "watch", "rolebindings", "credence:agent:secrets"},
		{"bind", "clusterroles", "credence:agent:secrets", "credence:webhook:pods"},
	},
	"credence:profiles:namespaces:base": {
		{"list", "watch", "create", "patch", "rolebindings"},
		{"bind", "clusterroles", "credence:agent:identities", "credence:accounts:default"},
	},
	"credence:registry": {
		{"list", "watch", "rolebindings", "credence:registry:secrets"},
	},
	"credence:agent:cluster": {
		{"list", "watch", "delete", "rolebindings", "credence:agent:secrets"},
		{"delete", "rolebindings", "credence:webhook:pods"},
	},
}

// No binding that is installed gives the roles for Secrets and pods: the binder does, namespace by namespace, and for credence-registry an admin.
func TestSecretsAndPodsAreGivenByTheBinderAlone(t *testing.T) {
	objects := testkit.Need(deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.Registry))(t)
	for _, object := range objects {
		if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); slices.Contains([]string{"credence:agent:secrets", "credence:webhook:pods", "credence:registry:secrets"}, role) {
			t.Errorf("%s %s binds %s", object.GetKind(), object.GetName(), role)
		}
	}
}

// A component that could read Secrets, write RBAC or impersonate would be worth stealing.
func TestComponentsHaveNoDangerousRights(t *testing.T) {
	objects := testkit.Need(deploy.Manifests(deploy.Registry, deploy.AgentPods))(t)
	for _, object := range objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		if object.GetName() == "credence:workloadidentities:granter" || object.GetName() == "credence:accounts:maker" {
			continue // people's, and not bound: TestGranter and TestAccountCreate try out what they may bind
		}
		for _, rule := range role.Rules {
			if object.GetName() == "credence:keys" && slices.Equal(rule.ResourceNames, []string{"credence-keys"}) && slices.Equal(rule.Verbs, []string{"get", "update", "watch"}) {
				continue // the one Secret with their own keys
			}
			if object.GetName() == "credence:controller:keys" && slices.Equal(rule.ResourceNames, []string{"credence-keys"}) && slices.Equal(rule.Verbs, []string{"create", "patch"}) {
				continue // it makes that Secret
			}
			if object.GetName() == "credence:apiserver:records-key" && slices.Equal(rule.ResourceNames, []string{"credence-records"}) && slices.Equal(rule.Verbs, []string{"get", "create", "patch", "update"}) {
				continue // the one Secret with the key of records
			}
			if object.GetName() == "credence:developer:kubernetes" && slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"create"}) {
				continue // people's, and blind: the answers to all but this have the Secret in them
			}
			if object.GetName() == "credence:agent:secrets" && slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"get", "list", "watch", "create", "patch", "delete"}) {
				continue // bound in labelled namespaces alone: the policies in 55-delivery-guards.yaml narrow what it may write
			}
			if object.GetName() == "credence:agent" && slices.Equal(rule.ResourceNames, []string{"credence-identities"}) && slices.Equal(rule.Verbs, []string{"get", "patch"}) {
				continue // the Secret with its own kubeconfig: the policy credence-agent-credentials narrows what it may write
			}
			if object.GetName() == "credence:registry:secrets" && slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"list", "watch", "patch"}) {
				continue // bound by an admin alone: the policy credence-registry-secrets narrows what it may write
			}
			if object.GetName() == "credence:apiserver:credentials" && slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"get"}) {
				continue // an admin binds it, where Secrets are that CredentialsBindings refer to: TestNothingBindsTheRightToCredentials
			}
			if narrow := slices.Concat(rule.Verbs, rule.Resources, rule.ResourceNames); slices.ContainsFunc(roleBindings[object.GetName()], func(right []string) bool { return slices.Equal(right, narrow) }) {
				continue
			}
			for _, value := range slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups) {
				switch value {
				case "*", "secrets", "impersonate", "bind", "escalate", rbacv1.GroupName:
					t.Errorf("%s %s has %q in a rule", object.GetKind(), object.GetName(), value)
				}
			}
		}
	}
}

// Without an admin's doing the API server reads no Secret.
func TestNothingBindsTheRightToCredentials(t *testing.T) {
	files := testkit.Need(deploy.Files())(t)
	for _, file := range files {
		for _, object := range file.Objects {
			if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role == "credence:apiserver:credentials" {
				t.Errorf("%s: %s %s binds %s", file.Name, object.GetKind(), object.GetName(), role)
			}
		}
	}
}

// The API server evaluates every policy of the cluster, and reads the parameters of each: where it may not list them, it tries again for ever.
func TestAPIServerReadsParametersOfPolicies(t *testing.T) {
	files := testkit.Need(deploy.Files())(t)
	rules := clusterRoles(t)["credence:apiserver"].Rules
	kinds := 0
	for _, file := range files {
		for _, object := range file.Objects {
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "paramKind", "kind")
			version, _, _ := unstructured.NestedString(object.Object, "spec", "paramKind", "apiVersion")
			if kind == "" {
				continue
			}
			kinds++
			group, _, named := strings.Cut(version, "/")
			if !named {
				group = "" // of the core
			}
			if !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, strings.ToLower(kind)+"s") && slices.Equal(rule.Verbs, []string{"get", "list", "watch"})
			}) {
				t.Errorf("%s: the API server may not list %s of %s, the parameters of policy %s", file.Name, kind, version, object.GetName())
			}
		}
	}
	if kinds == 0 {
		t.Error("no policy has parameters")
	}
}

// A label of a namespace can be written by its subresources, too: what guards labels guards them all.
func TestLabelsOfNamespacesAreGuardedInSubresources(t *testing.T) {
	objects := testkit.Need(deploy.Manifests())(t)
	policies := 0
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" || !strings.HasSuffix(object.GetName(), "-label") {
			continue
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy); err != nil {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Contains(rule.Resources, "namespaces") {
				continue
			}
			policies++
			if want := []string{"namespaces", "namespaces/status", "namespaces/finalize"}; !slices.Equal(rule.Resources, want) {
				t.Errorf("policy %s is for %v, want %v", policy.Name, rule.Resources, want)
			}
		}
	}
	if policies < 2 {
		t.Errorf("%d policies guard labels of namespaces", policies)
	}
}

func mapKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
