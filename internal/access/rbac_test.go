package access

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/test/testkit"
)

func rule(verb, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func TestRules(t *testing.T) {
	token := Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: "cart"}
	exec := Request{Verb: "create", Resource: "pods", Subresource: "exec", AnyName: true}
	pods := Request{Verb: "create", Resource: "pods"}
	for _, test := range []struct {
		request Request
		rule    rbacv1.PolicyRule
		want    bool
	}{
		{token, rule("create", "", "serviceaccounts/token"), true},
		{token, rule("create", "", "serviceaccounts/token", "cart"), true},
		{token, rule("create", "", "serviceaccounts/token", "other"), false},
		{token, rule("create", "", "*/token"), true},
		{token, rule("*", "*", "*"), true},
		{token, rule("create", "", "serviceaccounts"), false},
		{token, rule("create", "", "serviceaccounts/*"), false},
		{token, rule("create", "apps", "serviceaccounts/token"), false},
		{token, rule("get", "", "serviceaccounts/token"), false},
		{exec, rule("create", "", "pods/exec", "cart-0"), true},
		{pods, rule("create", "", "pods"), true},
		{pods, rule("create", "", "pods", "cart-0"), false}, // a new object has no name yet
		{pods, rule("create", "", "*/pods"), false},
		{pods, rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}, false},
	} {
		if got := test.request.allowedBy(test.rule); got != test.want {
			t.Errorf("%+v by %+v: %v", test.request, test.rule, got)
		}
	}
}

// orchard is the rights of a namespace with a bit of everything.
func orchard() *Rights {
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	binding := func(name, kind, role string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: subjects}
	}
	return &Rights{
		Namespace: "shop",
		Roles: map[string][]rbacv1.PolicyRule{
			"user":   {rule("use", "", "serviceaccounts", "cart")},
			"others": {rule("use", "", "serviceaccounts", "other"), rule("get", "", "secrets", "other-token")},
			"tokens": {rule("list", "", "secrets")},
		},
		ClusterRoles: map[string][]rbacv1.PolicyRule{
			"edit":    {rule("create", "", "pods/exec"), rule("impersonate", "", "serviceaccounts"), rule("patch", "apps", "deployments")},
			"cluster": {rule("*", "*", "*")},
			"nodes":   {rule("get", "", "nodes/proxy")},
			"worth":   {rule("use", "authentication.gardener.cloud", "workloadidentities", "banana")},
		},
		Bindings: []rbacv1.RoleBinding{
			binding("a", "Role", "user", user("jane"), rbacv1.Subject{Kind: "ServiceAccount", Name: "ci"}, user("system:serviceaccount:shop:ci")),
			binding("b", "Role", "others", user("joe")),
			binding("c", "Role", "tokens", user("reader")),
			binding("d", "ClusterRole", "edit", rbacv1.Subject{Kind: "Group", Name: "devs"}),
			binding("e", "ClusterRole", "nodes", user("not-by-a-rolebinding")),
			binding("f", "ClusterRole", "missing", user("nothing")),
			binding("g", "ClusterRole", "worth", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:shop"}),
		},
		ClusterBindings: []rbacv1.ClusterRoleBinding{
			{ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "y"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "nodes"}, Subjects: []rbacv1.Subject{user("kubelet-api"), {Kind: "ServiceAccount", Name: "without-namespace"}}},
		},
	}
}

func TestCanBecome(t *testing.T) {
	who := func(tokens []string, mode string) []string {
		var got []string
		for _, h := range orchard().CanBecome(Account{"shop", "cart"}, tokens, mode) {
			if h.Subject.Name != "system:masters" {
				got = append(got, fmt.Sprintf("%s: %s by %s", UserName(h.Subject), h.Way, h.By[0].Name))
			}
		}
		return got
	}
	enforced := []string{
		"jane: use by a",
		"kubelet-api: nodes/proxy by y",
		"system:serviceaccount:shop:ci: use by a",
		"devs: impersonate by d",
		"devs: pods/exec by d",
	}
	if diff := cmp.Diff(enforced, who(nil, "enforce")); diff != "" {
		t.Errorf("enforced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(slices.Clone(enforced), "devs: write templates by d"), who(nil, "audit")); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
	if got := who([]string{"cart-token"}, "enforce"); !slices.Contains(got, "reader: read its token Secrets by c") || slices.Contains(got, "joe: read its token Secrets by b") {
		t.Errorf("with a token Secret: %q", got)
	}
	ways := map[string]bool{}
	for _, h := range orchard().CanBecome(Account{"shop", "cart"}, []string{"cart-token"}, "") {
		if h.Subject.Name == "system:masters" {
			ways[h.Way] = true
		}
	}
	if all := Ways(Account{"shop", "cart"}, nil); len(ways) != len(all) {
		t.Errorf("an admin of the cluster has %d ways of %d", len(ways), len(all))
	}
}

func TestSources(t *testing.T) {
	use := Request{Verb: "use", Resource: "serviceaccounts", Name: "cart"}
	for name, test := range map[string]struct {
		groups []string
		want   int
	}{
		"jane": {nil, 1}, "joe": {nil, 0}, "system:serviceaccount:shop:ci": {nil, 1}, "ci": {nil, 0}, "root": {[]string{"system:masters"}, 1},
	} {
		subject := testkit.Need(Subject(name, false))(t)
		if got := orchard().Sources(use, subject, test.groups); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	cart := Account{"shop", "cart"}
	if r := orchard(); !r.MayUse(cart, "authentication.gardener.cloud", "workloadidentities", "banana") || r.MayUse(cart, "authentication.gardener.cloud", "workloadidentities", "apple") {
		t.Error("what the account may use is wrong")
	}
	unread := orchard()
	unread.ClusterRoles = nil
	var unknown []string
	unread.Unknown(func(s Source, _ []rbacv1.Subject) { unknown = append(unknown, s.Name) })
	if diff := cmp.Diff([]string{"x", "y", "d", "e", "f", "g"}, unknown); diff != "" {
		t.Error(diff)
	}
}
