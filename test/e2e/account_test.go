package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// clusterRole gives a user a right in the whole cluster, until the test ends.
func (p plane) clusterRole(t *testing.T, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := p.client(t).RbacV1()
	need(client.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}))(t)
	need(client.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { p.must(t, "", "kubectl", "delete", "clusterrole,clusterrolebinding", name) })
	p.untilGiven(t, "", rbacv1.Subject{Kind: "User", Name: user}, rules)
}

func TestEnable(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	lead := "lea-" + namespace
	enable := func(args ...string) (stdout, stderr string, code int) {
		return shared.command(t, "", "credence", append([]string{"enable", namespace}, args...)...)
	}
	lines := func(label, agent, makers, suffix string) string {
		return strings.NewReplacer("SUFFIX", suffix).Replace(fmt.Sprintf("namespace/%s %sSUFFIX\nrolebinding.rbac.authorization.k8s.io/credence-agent %sSUFFIX\nrolebinding.rbac.authorization.k8s.io/credence:accounts:maker %sSUFFIX\n", namespace, label, agent, makers))
	}
	labels := func() map[string]string {
		t.Helper()
		stored := need(shared.client(t).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}))(t)
		return stored.Labels
	}

	// A user without rights gets nothing written, and learns who can.
	_, stderr, code := enable("--as", lead, "--maker", lead)
	if code != 1 || !strings.Contains(stderr, `cannot get resource "namespaces"`) || !strings.Contains(stderr, "a cluster admin sets namespace "+namespace+" up") {
		t.Errorf("without rights: %d, %s", code, stderr)
	}
	// Nor does an admin of the namespace, who may not change its labels.
	shared.admin(t, namespace, "ada-"+namespace)
	if _, stderr, code = enable("--as", "ada-"+namespace); code != 1 || !strings.Contains(stderr, `"namespaces"`) {
		t.Errorf("as admin of the namespace: %d, %s", code, stderr)
	}
	if stdout, stderr, code := enable("--maker", lead, "--account-use", "enforce", "--dry-run"); code != 0 || stdout != lines("configured", "created", "created", " (server dry run)") {
		t.Errorf("dry run: %d\n%s%s", code, stdout, stderr)
	}
	if got := labels(); got[v1alpha1.LabelNamespaceIdentities] != "" {
		t.Errorf("after the dry run: %v", got)
	}
	manifests, _, _ := enable("--maker", lead, "--account-use", "enforce", "--print")
	if out := shared.must(t, manifests, "kubectl", "apply", "--dry-run=server", "-f", "-"); strings.Count(out, "(server dry run)") != 3 {
		t.Errorf("kubectl apply: %s", out)
	}
	if stdout, stderr, code := enable("--maker", lead, "--account-use", "enforce"); code != 0 || stdout != lines("configured", "created", "created", "") {
		t.Errorf("enable: %d\n%s%s", code, stdout, stderr)
	}
	if got := labels(); got[v1alpha1.LabelNamespaceIdentities] != "enabled" || got["identity.credence.dev/account-use"] != "enforce" {
		t.Errorf("labels: %v", got)
	}
	if stdout, _, code := enable("--maker", lead); code != 0 || stdout != lines("unchanged", "unchanged", "unchanged", "") {
		t.Errorf("a second time: %d\n%s", code, stdout)
	}
	if stdout, _, code := enable("--maker", "another", "--maker-group", "team"); code != 0 || stdout != lines("unchanged", "unchanged", "configured", "") {
		t.Errorf("another maker: %d\n%s", code, stdout)
	}
	if stdout, stderr, code := enable("--maker", lead, "--profiles"); code != 0 || stdout != lines("configured", "unchanged", "unchanged", "") || labels()["identity.credence.dev/profiles"] != "enabled" {
		t.Errorf("profiles: %d, %v\n%s%s", code, labels(), stdout, stderr)
	}
	shared.untilAllowed(t, namespace, lead, "use", "serviceaccounts", "cart")
	// A binding of another role is not taken over.
	shared.must(t, "", "kubectl", "delete", "rolebinding", "credence:accounts:maker", "-n", namespace)
	shared.must(t, "", "kubectl", "create", "rolebinding", "credence:accounts:maker", "-n", namespace, "--clusterrole=view", "--user=x")
	if _, stderr, code := enable("--maker", lead); code != 1 || !strings.Contains(stderr, "exists for another role, ClusterRole view") {
		t.Errorf("a binding in the way: %d, %s", code, stderr)
	}
	if _, stderr, code := shared.command(t, "", "credence", "enable", "missing-"+namespace); code != 1 || !strings.Contains(stderr, "not found") {
		t.Errorf("a namespace that does not exist: %d, %s", code, stderr)
	}
}

func TestAccountCreate(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	lead, dev := "lea-"+namespace, "dev-"+namespace
	shared.must(t, "", "credence", "enable", namespace, "--account-use", "enforce", "--maker", lead)
	shared.untilAllowed(t, namespace, lead, "use", "workloadidentities.authentication.gardener.cloud", "cart")
	shared.bind(t, namespace, "credence:developer", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: dev})
	create := func(as string, args ...string) (stdout, stderr string, code int) {
		return shared.command(t, "", "credence", append([]string{"account", "create", "-n", namespace, "--as", as}, args...)...)
	}
	const target = "aws:arn:aws:iam::123456789012:role/cart,region=eu-central-1"
	whole := []string{"cart", "--identity", target, "--profile", "restricted", "--enforce", "--for", dev}
	const done = "serviceaccountprofile.accounts.credence.dev/cart DONE\nworkloadidentity.authentication.gardener.cloud/cart DONE\n" +
		"role.rbac.authorization.k8s.io/credence:workloadidentities:user:cart DONE\nrolebinding.rbac.authorization.k8s.io/credence:workloadidentities:user:cart DONE\nserviceaccount/cart DONE\n" +
		"role.rbac.authorization.k8s.io/credence:serviceaccounts:user:cart DONE\nrolebinding.rbac.authorization.k8s.io/credence:serviceaccounts:user:cart DONE\n"
	// The template, and the right of its makers to use it, are an admin's.
	template := `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"SecurityContextTemplate","metadata":{"name":"restricted"},"spec":{"pod":{"runAsNonRoot":true}}}`
	shared.must(t, template, "kubectl", "apply", "-f", "-")
	t.Cleanup(func() {
		shared.must(t, "", "kubectl", "delete", "securitycontexttemplate", "restricted", "--ignore-not-found")
	})
	shared.clusterRole(t, "template-"+namespace, lead, rbacv1.PolicyRule{Verbs: []string{"use"}, APIGroups: []string{"accounts.credence.dev"}, Resources: []string{"securitycontexttemplates"}, ResourceNames: []string{"restricted"}})

	// A user without rights writes nothing, not even a part.
	_, stderr, code := create(dev, whole...)
	if code != 1 || !strings.Contains(stderr, "is forbidden") || !strings.Contains(stderr, "ClusterRole credence:accounts:maker") {
		t.Errorf("without rights: %d, %s", code, stderr)
	}
	stdout, stderr, code := create(lead, append(whole, "--dry-run")...)
	if want := strings.ReplaceAll(done, "DONE", "created (server dry run)"); code != 0 || stdout != want {
		t.Errorf("dry run: %d\n%s%s", code, stdout, stderr)
	}
	// The last object is refused: the role of the users has other rules. Nothing is written.
	shared.must(t, "", "kubectl", "create", "role", "credence:serviceaccounts:user:cart", "-n", namespace, "--verb=get", "--resource=pods")
	if _, stderr, code = create(lead, whole...); code != 1 || !strings.Contains(stderr, "exists with other rules than use on serviceaccounts cart") {
		t.Errorf("a role in the way: %d, %s", code, stderr)
	}
	client := shared.client(t)
	if _, err := client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "cart", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after refusals: %v", err)
	}
	shared.must(t, "", "kubectl", "delete", "role", "credence:serviceaccounts:user:cart", "-n", namespace)
	// The API server tries all objects out before the first write.
	if _, stderr, code = create(lead, "cart", "--identity", target, "--audience", strings.Repeat("x", 601)); code != 1 || !strings.Contains(stderr, "spec.audiences") {
		t.Errorf("an audience that is too long: %d, %s", code, stderr)
	}

	// An admin of the namespace may not give an identity, and makes accounts without one.
	admin := "ada-" + namespace
	shared.admin(t, namespace, admin)
	if _, stderr, code = create(admin, "mail", "--identity", target); code != 1 || !strings.Contains(stderr, "attempting to grant RBAC permissions not currently held") || !strings.Contains(stderr, "ClusterRole credence:accounts:maker") {
		t.Errorf("an identity, as admin: %d, %s", code, stderr)
	}
	if stdout, stderr, code = create(admin, "mail", "--for", dev); code != 0 || !strings.HasPrefix(stdout, "serviceaccount/mail created\n") {
		t.Errorf("without an identity, as admin: %d\n%s%s", code, stdout, stderr)
	}
	if out := shared.must(t, "", "kubectl", "get", "workloadidentities", "-n", namespace, "-o", "name"); out != "" {
		t.Errorf("left by refusals: %s", out)
	}

	stdout, stderr, code = create(lead, whole...)
	head, trust, _ := strings.Cut(stdout, "\n\n")
	if want := strings.ReplaceAll(done, "DONE", "created"); code != 0 || head+"\n" != want {
		t.Fatalf("create: %d\n%s%s", code, stdout, stderr)
	}
	if want := shared.must(t, "", "credence", "trust", "cart", "-n", namespace); trust != want {
		t.Errorf("trust: %s\nwant %s", trust, want)
	}
	shared.untilAllowed(t, namespace, "system:serviceaccount:"+namespace+":cart", "use", "workloadidentities.authentication.gardener.cloud", "cart")
	for _, right := range [][]string{{dev, "use", "serviceaccounts", "other"}, {"system:serviceaccount:" + namespace + ":cart", "use", "workloadidentities.authentication.gardener.cloud", "other"}} {
		if shared.mayDo(t, namespace, right[0], right[1], right[2], right[3]) {
			t.Errorf("more than is wanted: %v", right)
		}
	}
	shared.untilAllowed(t, namespace, dev, "use", "serviceaccounts", "cart")
	// The team runs a pod with the account, and the pod has the identity.
	var pod string
	eventually(t, func() error {
		if pod, stderr, code = shared.command(t, "", "kubectl", "run", "cart", "-n", namespace, "--as", dev, "--image", "example.com/cart", "-o", "yaml",
			"--overrides", `{"spec":{"serviceAccountName":"cart","securityContext":{"runAsNonRoot":true}}}`); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	if !strings.Contains(pod, "value: arn:aws:iam::123456789012:role/cart") {
		t.Errorf("the pod:\n%s", pod)
	}

	// Missing objects are completed, and a second time changes nothing.
	shared.must(t, "", "kubectl", "delete", "rolebinding", "credence:workloadidentities:user:cart", "-n", namespace)
	if stdout, stderr, code = create(lead, whole...); code != 0 || strings.Count(stdout, "unchanged\n") != 6 || strings.Count(stdout, "user:cart created\n") != 1 {
		t.Errorf("again: %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code = create(lead, "cart", "--identity", "aws:arn:aws:iam::123456789012:role/other"); code != 1 || !strings.Contains(stderr, "exists with another target") {
		t.Errorf("another target: %d, %s", code, stderr)
	}
	// A profile with identities of its own: pods would be refused.
	shared.must(t, `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":"bill","namespace":"`+namespace+`"},"spec":{"workloadIdentities":["cart"]}}`, "kubectl", "create", "-f", "-")
	if stdout, stderr, code = create(lead, "bill", "--identity", target); code != 1 || !strings.Contains(stderr, "exists with workloadIdentities") {
		t.Errorf("a profile in the way: %d\n%s%s", code, stdout, stderr)
	}
	shared.must(t, "", "kubectl", "delete", "serviceaccountprofile", "bill", "-n", namespace)
	if _, stderr, code = shared.command(t, "", "credence", "access", "grant", dev, "*", "-n", "missing-"+namespace, "--dry-run=server"); code != 1 || !strings.Contains(stderr, "not found") {
		t.Errorf("a grant in a namespace that does not exist: %d, %s", code, stderr)
	}
	// A namespace that is not enabled: nothing is written.
	bare := shared.namespace(t)
	if _, stderr, code = shared.command(t, "", "credence", "account", "create", "cart", "-n", bare, "--identity", target); code != 1 || !strings.Contains(stderr, "a cluster admin must enable it") {
		t.Errorf("a namespace without the label: %d, %s", code, stderr)
	}
	if out := shared.must(t, "", "kubectl", "get", "workloadidentities", "-n", bare, "-o", "name"); out != "" {
		t.Errorf("left in a namespace without the label: %s", out)
	}
	testAccountList(t, namespace, lead, dev)
}

func testAccountList(t *testing.T, namespace, lead, dev string) {
	t.Helper()
	list := func(as string, args ...string) string {
		t.Helper()
		return strings.Join(strings.Fields(shared.must(t, "", "credence", append([]string{"account", "list", "-n", namespace, "--as", as}, args...)...)), " ")
	}
	if got := list(lead); !strings.HasPrefix(got, "NAME USABLE IDENTITIES PROFILE USERNAME cart yes cart restricted Enforce") || !strings.Contains(got, "default yes - - -") {
		t.Errorf("as maker: %s", got)
	}
	shared.must(t, "", "kubectl", "create", "serviceaccount", "other", "-n", namespace)
	if got := list(dev); !strings.Contains(got, "cart yes") || !strings.Contains(got, "other no") {
		t.Errorf("as developer: %s", got)
	}
	if got := list(dev, "--usable"); !strings.Contains(got, "cart yes") || strings.Contains(got, "other") {
		t.Errorf("usable: %s", got)
	}
	if got := list(lead, "-o", "json"); !strings.Contains(got, `"workloadIdentities": [ "cart" ], "profile": true, "template": "restricted", "mode": "Enforce"`) ||
		!strings.Contains(got, `"workloadIdentities": [], "profile": false, "template": "", "mode": ""`) {
		t.Errorf("as JSON: %s", got)
	}
	// A user who may list nothing sees what the rights name. All else is not known, rather than none.
	mallory := "mallory-" + namespace
	shared.must(t, "", "credence", "access", "grant", "-n", namespace, "--", mallory, "cart")
	shared.untilAllowed(t, namespace, mallory, "use", "serviceaccounts", "cart")
	stdout, stderr, code := shared.command(t, "", "credence", "account", "list", "-n", namespace, "--as", mallory)
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "cart yes ? ? ?") || strings.Contains(stdout, "other") || !strings.Contains(stderr, "you may not list the service accounts") {
		t.Errorf("without a right to list: %d\n%s%s", code, stdout, stderr)
	}
	if got := list(mallory, "-o", "json"); !strings.Contains(got, `"workloadIdentities": null, "profile": null`) {
		t.Errorf("without a right to list, as JSON: %s", got)
	}
	if _, stderr, code = shared.command(t, "", "credence", "account", "list", "-A", "--as", mallory); code != 1 || !strings.Contains(stderr, `lacks the verb "list" on "serviceaccounts"`) {
		t.Errorf("of all namespaces: %d, %s", code, stderr)
	}
}
