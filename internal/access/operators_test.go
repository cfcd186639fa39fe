package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestOperators(t *testing.T) {
	controllers := rbacv1.RoleRef{Kind: "ClusterRole", Name: Controllers}
	got := Operators([]rbacv1.ClusterRoleBinding{{RoleRef: controllers, Subjects: []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "kube-system", Name: "job-controller"},
		{Kind: "User", Name: "system:kube-controller-manager"},
		{Kind: "User", Name: "system:serviceaccount:argo:rollouts"},
	}}, {RoleRef: controllers, Subjects: []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "argo", Name: "rollouts"},
		{Kind: "ServiceAccount", Namespace: "tekton", Name: "controller"},
	}}, {RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "tekton", Name: "reader"},
	}}})
	if diff := cmp.Diff([]Account{{"argo", "rollouts"}, {"tekton", "controller"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// An operator is covered by a policy for a kind that it may watch; its tenants have bindings in its namespace.
func TestOperatorOfANamespace(t *testing.T) {
	operator := Account{"argo", "rollouts"}
	rules := func(verbs, groups, resources string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{verbs}, APIGroups: []string{groups}, Resources: []string{resources}}}
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}
	}
	r := &Rights{
		Namespace:    "argo",
		Roles:        map[string][]rbacv1.PolicyRule{"exec": rules("create", "", "pods/exec"), "read": rules("get", "", "pods")},
		ClusterRoles: map[string][]rbacv1.PolicyRule{"operator": rules("watch", "argoproj.io", "rollouts"), "all": rules("*", "*", "*")},
		Bindings: []rbacv1.RoleBinding{
			{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "exec"}, Subjects: []rbacv1.Subject{user("jane"), operator.subject()}},
			{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "read"}, Subjects: []rbacv1.Subject{user("joe")}},
		},
		ClusterBindings: []rbacv1.ClusterRoleBinding{
			{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, Subjects: []rbacv1.Subject{operator.subject()}},
			{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"}, Subjects: []rbacv1.Subject{user("admin")}},
		},
	}
	if tenants := r.Tenants(operator, Enforce); len(tenants) != 1 || tenants[0].Subject.Name != "jane" || tenants[0].Way != "pods/exec" {
		t.Errorf("tenants are %v, want jane by pods/exec", tenants)
	}
	policies := []string{"credence-account-use-pods", "another", "credence-account-use-rollouts.argoproj.io"}
	if !r.Follows(operator, Kinds(policies)) {
		t.Error("the policy for rollouts is not found")
	}
	if r.Follows(operator, Kinds(policies[:2])) || r.Follows(operator, Kinds([]string{"credence-account-use-tasks.tekton.dev"})) {
		t.Error("a policy is found that is not of a kind of the operator")
	}
}
