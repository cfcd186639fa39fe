package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// accessTeam is a namespace with service account cart, an admin, and a user with the role edit.
func accessTeam(t *testing.T) (namespace, admin, editor string) {
	t.Helper()
	namespace = shared.namespace(t)
	admin, editor = "ada-"+namespace, "eve-"+namespace
	need(shared.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{}))(t)
	shared.bind(t, namespace, "edit", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: editor})
	shared.admin(t, namespace, admin)
	shared.untilAllowed(t, namespace, admin, "use", "serviceaccounts", "cart")
	return namespace, admin, editor
}

// role makes a Role and binds it to a user.
func (p plane) role(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule, user string) {
	t.Helper()
	client := p.client(t).RbacV1()
	need(client.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}))(t)
	need(client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{}))(t)
	p.untilGiven(t, namespace, rbacv1.Subject{Kind: "User", Name: user}, rules)
}

func (p plane) mayDo(t *testing.T, namespace, user, verb, resource, name string, groups ...string) bool {
	t.Helper()
	what := schema.ParseGroupResource(resource) // RESOURCE.GROUP
	review := need(p.client(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: what.Group, Resource: what.Resource, Name: name,
		}},
	}, metav1.CreateOptions{}))(t)
	return review.Status.Allowed
}

// untilAllowed waits until the API server's authorizer has seen a right.
func (p plane) untilAllowed(t *testing.T, namespace, user, verb, resource, name string, groups ...string) {
	t.Helper()
	eventually(t, func() error {
		if !p.mayDo(t, namespace, user, verb, resource, name, groups...) {
			return fmt.Errorf("%s %s may not %s %s %s", user, groups, verb, resource, name)
		}
		return nil
	})
}

// untilGiven waits until the authorizer has seen the last of the rules of a new role: other roles of the subject may have the first.
func (p plane) untilGiven(t *testing.T, namespace string, subject rbacv1.Subject, rules []rbacv1.PolicyRule) {
	t.Helper()
	rule, user, groups := rules[len(rules)-1], subject.Name, []string(nil)
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	case rbacv1.GroupKind:
		user, groups = "", []string{subject.Name}
	}
	name := ""
	if len(rule.ResourceNames) > 0 {
		name = rule.ResourceNames[0]
	}
	p.untilAllowed(t, namespace, user, rule.Verbs[len(rule.Verbs)-1], rule.Resources[0]+"."+rule.APIGroups[0], name, groups...)
}

func TestAccessGrant(t *testing.T) {
	inTurn(t)
	namespace, admin, editor := accessTeam(t)
	grant := func(as string, args ...string) (stdout, stderr string, code int) {
		return shared.command(t, "", "credence", append([]string{"access", "grant", "-n", namespace, "--as", as}, args...)...)
	}
	const name = "credence:serviceaccounts:user:cart"
	written := func(done, suffix string) string {
		return strings.NewReplacer("DONE", done, "SUFFIX", suffix).Replace("role.rbac.authorization.k8s.io/" + name + " DONESUFFIX\nrolebinding.rbac.authorization.k8s.io/" + name + " DONESUFFIX\n")
	}

	// Nothing is kept of a dry run, and its objects are the ones that are written.
	for _, dry := range []string{"client", "server"} {
		stdout, stderr, code := grant(admin, "jane", "cart", "--dry-run="+dry)
		if want := written("created", map[string]string{"client": " (dry run)", "server": " (server dry run)"}[dry]); stdout != want || code != 0 {
			t.Errorf("dry run %s: %d\n%s%s", dry, code, stdout, stderr)
		}
	}
	client := shared.client(t).RbacV1()
	if _, err := client.Roles(namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after dry runs: %v", err)
	}
	manifest, _, _ := grant(admin, "jane", "cart", "--dry-run=client", "-o", "yaml")
	if out := shared.must(t, manifest, "kubectl", "apply", "--dry-run=server", "-f", "-"); strings.Count(out, "created (server dry run)") != 2 {
		t.Errorf("kubectl apply: %s", out)
	}

	// Users without the right are refused as the API server words it, and nothing is written.
	for user, words := range map[string]string{"mallory-" + namespace: `cannot get resource "roles"`, editor: `cannot get resource "roles"`} {
		if _, stderr, code := grant(user, user, "cart"); code != 1 || !strings.Contains(stderr, words) || !strings.Contains(stderr, "an admin of namespace "+namespace) {
			t.Errorf("%s: %d, %s", user, code, stderr)
		}
	}
	// A user who may write roles may not give what they lack.
	writer := "rob-" + namespace
	shared.role(t, namespace, "writer", []rbacv1.PolicyRule{{Verbs: []string{"get", "create", "update"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}}}, writer)
	eventually(t, func() error {
		_, stderr, code := grant(writer, writer, "cart")
		if code != 1 {
			return fatal{fmt.Errorf("a user without the right gave it: %d %s", code, stderr)}
		}
		if !strings.Contains(stderr, "attempting to grant RBAC permissions not currently held") || !strings.Contains(stderr, "users may only give rights that they have") {
			return fmt.Errorf("refused with %s", stderr)
		}
		return nil
	})
	if shared.mayDo(t, namespace, writer, "use", "serviceaccounts", "cart") {
		t.Error("the writer of roles may use the account")
	}

	stdout, stderr, code := grant(admin, "jane", "cart")
	if want := written("created", "") + "user jane may use service account " + namespace + "/cart\n"; stdout != want || complaint(stderr) != "" || code != 0 {
		t.Errorf("grant: %d\n%s%s", code, stdout, stderr)
	}
	shared.untilAllowed(t, namespace, "jane", "use", "serviceaccounts", "cart")
	if shared.mayDo(t, namespace, "jane", "use", "serviceaccounts", "default") {
		t.Error("jane may use an account that was not given")
	}
	before := need(client.RoleBindings(namespace).Get(t.Context(), name, metav1.GetOptions{}))(t)
	if stdout, _, _ := grant(admin, "jane", "cart"); !strings.HasPrefix(stdout, written("unchanged", "")) {
		t.Errorf("the same again: %s", stdout)
	}
	for _, more := range [][]string{{"--group", "devs", "cart"}, {"system:serviceaccount:" + namespace + ":ci", "cart"}, {"jane", "*"}} {
		if stdout, stderr, code := grant(admin, more...); code != 0 {
			t.Errorf("%s: %d\n%s%s", more, code, stdout, stderr)
		}
	}
	after, err := client.RoleBindings(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || after.UID != before.UID || len(after.Subjects) != 3 || after.Subjects[2].Kind != "ServiceAccount" {
		t.Errorf("the binding: %v, %v", after.Subjects, err)
	}

	// Another role of that name is not bound.
	need(client.Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "credence:serviceaccounts:user:trap"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	}, metav1.CreateOptions{}))(t)
	if _, stderr, code := grant(admin, "jane", "a-first", "trap"); code != 1 || !strings.Contains(stderr, "exists with other rules") {
		t.Errorf("a role in the way: %d, %s", code, stderr)
	}
	if _, err := client.Roles(namespace).Get(t.Context(), "credence:serviceaccounts:user:a-first", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("half of it was written: %v", err)
	}
}

// complaint is what a command writes to standard error but for its progress, which it shows where it waits for longer than two seconds.
func complaint(stderr string) string {
	lines := strings.SplitAfter(stderr, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "waiting for ") }), "")
}
