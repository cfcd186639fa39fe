package e2e_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/access"
)

// accessWho is what "credence access who -o json" prints.
type accessWho struct {
	Mode    string          `json:"mode"`
	Holders []access.Holder `json:"holders"`
	MayUse  struct {
		WorkloadIdentities  []string `json:"workloadIdentities"`
		GMSACredentialSpecs []string `json:"gmsaCredentialSpecs"`
	} `json:"mayUse"`
	Notes []string `json:"notes"`
}

func (w accessWho) has(user, way string) bool {
	return slices.ContainsFunc(w.Holders, func(h access.Holder) bool { return access.UserName(h.Subject) == user && h.Way == way })
}

// Each user's ways to become an account are those that the API server's authorizer allows.
func TestAccessWho(t *testing.T) {
	inTurn(t)
	namespace, admin, editor := accessTeam(t)
	rule := func(verb, group, resource string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}}
	}
	users := map[string][]rbacv1.PolicyRule{
		"user":      rule("use", "", "serviceaccounts", "cart"),
		"of-others": rule("use", "", "serviceaccounts", "default"),
		"minter":    rule("create", "", "serviceaccounts/token", "cart"),
		"mask":      rule("impersonate", "", "serviceaccounts", "cart"),
		"reader":    rule("get", "", "secrets", "cart-token"),
		"elsewhere": rule("get", "", "secrets", "another"),
		"debugger":  rule("patch", "", "pods/ephemeralcontainers"),
		"executor":  rule("create", "", "*/exec"),
		"scaler":    rule("patch", "apps", "deployments/scale"),
		"batch":     rule("create", "batch", "*"),
		"nodes":     rule("get", "", "nodes/proxy"), // a Role gives no right to what is not in a namespace
		"nothing":   rule("get", "", "pods"),
	}
	names := []string{admin, editor}
	for name, rules := range users {
		user := name + "-" + namespace
		shared.role(t, namespace, name, rules, user)
		names = append(names, user)
	}
	need(shared.client(t).CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cart-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "cart"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{}))(t)
	for _, identity := range []string{"banana", "apple"} {
		shared.must(t, "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: "+identity+", namespace: "+namespace+"}\nspec:\n  audiences: [x]\n  targetSystem: {type: generic}\n", "kubectl", "create", "-f", "-")
	}
	for _, name := range []string{"windows", "other"} {
		shared.createSpec(t, namespace+"-"+name)
		t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "gmsacredentialspec", namespace+"-"+name) })
	}
	shared.role(t, namespace, "worth", append(rule("use", "authentication.gardener.cloud", "workloadidentities", "banana"),
		rule("use", "windows.k8s.io", "gmsacredentialspecs", namespace+"-windows")...), "system:serviceaccount:"+namespace+":cart")

	who := func(as ...string) (answer accessWho) {
		t.Helper()
		out := shared.must(t, "", "credence", append([]string{"access", "who", "cart", "-n", namespace, "-o", "json"}, as...)...)
		must(t, json.Unmarshal([]byte(out), &answer))
		return answer
	}
	answer := who()
	if len(answer.Notes) > 0 || answer.Mode != "" || !slices.Equal(answer.MayUse.WorkloadIdentities, []string{"banana"}) ||
		!slices.Equal(answer.MayUse.GMSACredentialSpecs, []string{namespace + "-windows"}) {
		t.Errorf("notes %q, mode %q, it may use %+v", answer.Notes, answer.Mode, answer.MayUse)
	}
	client := shared.client(t).AuthorizationV1().SubjectAccessReviews()
	for _, user := range names {
		for _, way := range access.Ways(access.Account{Namespace: namespace, Name: "cart"}, []string{"cart-token"}) {
			allowed := slices.ContainsFunc(way.Requests, func(r access.Request) bool {
				attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name}
				if r.OfCluster {
					attributes.Namespace = ""
				}
				review := need(client.Create(t.Context(), &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: attributes},
				}, metav1.CreateOptions{}))(t)
				return review.Status.Allowed
			})
			if answer.has(user, way.Name) != allowed {
				t.Errorf("%s, %s: listed %v, allowed %v", user, way.Name, !allowed, allowed)
			}
		}
	}
	for user, way := range map[string]string{"user": "use", "minter": "serviceaccounts/token", "mask": "impersonate", "reader": "read its token Secrets", "debugger": "ephemeral containers", "executor": "pods/exec", "batch": "write templates"} {
		if !answer.has(user+"-"+namespace, way) {
			t.Errorf("%s has not the way %s: %v", user, way, answer.Holders)
		}
	}

	// Where use is enforced, templates are a way of those alone who have it.
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/account-use=enforce")
	if answer := who(); answer.Mode != "enforce" || answer.has(editor, "write templates") || !answer.has(editor, "impersonate") || !answer.has(admin, "use") {
		t.Errorf("enforced: %+v", answer)
	}
	// An admin of the namespace is shown what they may not read.
	if answer := who("--as", admin); len(answer.Notes) == 0 || !answer.has("user-"+namespace, "use") || answer.has(editor, "impersonate") {
		t.Errorf("for an admin of the namespace: %+v", answer)
	}
	if _, stderr, code := shared.command(t, "", "credence", "access", "who", "cart", "-n", namespace, "--as", "mallory-"+namespace); code != 1 || !strings.Contains(stderr, `cannot get resource "serviceaccounts"`) {
		t.Errorf("without rights: %d, %s", code, stderr)
	}
}

func TestAccessCan(t *testing.T) {
	inTurn(t)
	namespace, admin, editor := accessTeam(t)
	shared.must(t, "", "credence", "access", "grant", "-n", namespace, "--group", "devs-"+namespace, "cart", "--as", admin)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/account-use=enforce")
	eventually(t, func() error {
		if stdout, _, code := shared.command(t, "", "credence", "access", "can", "--group", "devs-"+namespace, "cart", "-n", namespace); code != 0 {
			return errors.New(stdout)
		}
		return nil
	})
	for _, test := range []struct {
		as     string
		args   []string
		code   int
		stdout string
	}{
		{"", []string{"jane", "cart"}, 1, "user jane may not use service account " + namespace + "/cart\n"},
		{"", []string{"jane", "cart"}, 1, "credence access grant -n " + namespace + " -- jane cart\n"},
		{"", []string{"jane", "cart", "--in-group", "devs-" + namespace}, 0, "  by      RoleBinding credence:serviceaccounts:user:cart (Role credence:serviceaccounts:user:cart)\n"},
		{admin, []string{"--group", "devs-" + namespace, "cart"}, 0, "group devs-" + namespace + " may use service account"},
		{admin, []string{"jane", "cart", "--in-group", "devs-" + namespace}, 0, "mode    enforce: users without the right are refused"},
		{"", []string{"system:serviceaccount:" + namespace + ":cart", "cart"}, 0, "it is the account itself"},
		{"", []string{"system:serviceaccount:" + namespace + ":default", "cart"}, 1, "may not use"},
		{editor, []string{editor, "cart"}, 1, "user " + editor + " may not use service account"},
		{admin, []string{admin, "cart"}, 0, "user " + admin + " may use service account"},
	} {
		args := append([]string{"access", "can", "-n", namespace}, test.args...)
		if test.as != "" {
			args = append(args, "--as", test.as)
		}
		if stdout, stderr, code := shared.command(t, "", "credence", args...); code != test.code || !strings.Contains(stdout, test.stdout) {
			t.Errorf("%s as %s: %d\n%s%s", test.args, test.as, code, stdout, stderr)
		}
	}
	if _, stderr, code := shared.command(t, "", "credence", "access", "can", "jane", "cart", "-n", namespace, "--as", editor); code != 1 || !strings.Contains(stderr, "localsubjectaccessreviews") {
		t.Errorf("about another user, without the right: %d, %s", code, stderr)
	}
}
