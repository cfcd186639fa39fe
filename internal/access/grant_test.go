package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestSubject(t *testing.T) {
	for name, test := range map[string]struct {
		group bool
		want  rbacv1.Subject
	}{
		"jane@example.com":                      {want: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane@example.com"}},
		"oidc:team/a":                           {group: true, want: rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "oidc:team/a"}},
		"system:serviceaccount:shop:ci.example": {want: rbacv1.Subject{Kind: "ServiceAccount", Namespace: "shop", Name: "ci.example"}},
		"system:serviceaccounts:shop":           {group: true, want: rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:shop"}},
		"":                                      {},
		"system:serviceaccount:shop":            {},
		"system:serviceaccount:shop:":           {},
		"system:serviceaccount:shop:*":          {},
		"system:serviceaccount:shop:a:b":        {},
		"system:serviceaccount:Shop:ci":         {},
	} {
		got, err := Subject(name, test.group)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want.Name != "") {
			t.Errorf("%q: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestGrants(t *testing.T) {
	jane, _ := Subject("jane", false)
	devs, _ := Subject("devs", true)
	cart, all := Account{"shop", "cart"}, Account{"shop", All}
	if all.Role() != nil || all.Binding().RoleRef.Kind != "ClusterRole" || all.Binding().RoleRef.Name != UserRole {
		t.Errorf("all accounts: %v, %v", all.Role(), all.Binding())
	}
	binding := cart.Binding(jane)
	for _, test := range []struct {
		subject rbacv1.Subject
		want    bool
	}{{jane, false}, {devs, true}, {devs, false}} {
		if changed, err := Merge(binding, cart.Binding(test.subject)); changed != test.want || err != nil {
			t.Errorf("add %v: %v, %v", test.subject, changed, err)
		}
	}
	if diff := cmp.Diff([]rbacv1.Subject{jane, devs}, binding.Subjects); diff != "" {
		t.Error(diff)
	}
	// A binding of the account's name must not be one to more than the account.
	binding.RoleRef.Name = "admin"
	if changed, err := Merge(binding, cart.Binding(jane)); changed || err == nil {
		t.Error("a binding to another role is added to")
	}
	role := cart.Role()
	if err := CheckRole(role, cart.Role()); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*rbacv1.Role){
		"more names":  func(r *rbacv1.Role) { r.Rules[0].ResourceNames = append(r.Rules[0].ResourceNames, "x") },
		"all names":   func(r *rbacv1.Role) { r.Rules[0].ResourceNames = nil },
		"more verbs":  func(r *rbacv1.Role) { r.Rules[0].Verbs = []string{"*"} },
		"more rules":  func(r *rbacv1.Role) { r.Rules = append(r.Rules, rbacv1.PolicyRule{}) },
		"fewer rules": func(r *rbacv1.Role) { r.Rules = nil },
	} {
		role := cart.Role()
		if change(role); CheckRole(role, cart.Role()) == nil {
			t.Errorf("%s: not refused", what)
		}
	}
}
