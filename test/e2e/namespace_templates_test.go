package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// processUser is the user of credence-server profiles.
const processUser = "system:serviceaccount:credence-system:credence-profiles"

// template applies a NamespaceTemplate for the namespaces with the label team of its name, and deletes it when the test ends.
func (p plane) template(t *testing.T, name, spec string) {
	t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"NamespaceTemplate","metadata":{"name":%q},"spec":%s}`, name, spec)
	eventually(t, func() error { // until the authorizer has seen the rights of the process
		_, stderr, code := p.command(t, manifest, "kubectl", "apply", "-f", "-")
		if code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	t.Cleanup(func() { p.must(t, "", "kubectl", "delete", "namespacetemplate", name, "--ignore-not-found") })
}

// ready waits until the condition of a template has a status and a reason, and the first incomplete namespace the words, and returns the status of
// the template. Other messages may be there for a moment.
func (p plane) ready(t *testing.T, name, want string, words ...string) accounts.NamespaceTemplateStatus {
	t.Helper()
	var template accounts.NamespaceTemplate
	eventually(t, func() error {
		template = accounts.NamespaceTemplate{}
		if err := json.Unmarshal([]byte(p.must(t, "", "kubectl", "get", "namespacetemplate", name, "-o", "json")), &template); err != nil {
			return fatal{err}
		}
		message := ""
		if len(template.Status.Incomplete) > 0 {
			message = template.Status.Incomplete[0].Message
		}
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("template %s: want %q: %+v", name, word, template.Status)
			}
		}
		for _, condition := range template.Status.Conditions {
			if got := string(condition.Status) + " " + condition.Reason; got == want && condition.ObservedGeneration == template.Generation {
				return nil
			}
		}
		return fmt.Errorf("template %s: want %s: %+v", name, want, template.Status)
	})
	return template.Status
}

func TestNamespaceTemplates(t *testing.T) {
	inTurn(t)
	first := shared.namespace(t)
	team := first // a name that no other test has
	selector := `"namespaceSelector":{"matchLabels":{"e2e-team":"` + team + `"}}`
	shared.template(t, team, `{`+selector+`,
"labels":{"identity.credence.dev/workload-identities":"enabled","identity.credence.dev/profiles":"enabled","identity.credence.dev/account-use":"warn","identity.credence.dev/delivery":"csi","pod-security.kubernetes.io/enforce":"baseline"},
"serviceAccounts":[{"name":"default","automountToken":false},{"name":"app","annotations":{"identity.credence.dev/workload-identities":"app"},"profile":{"securityContext":{"pod":{"runAsNonRoot":true}}}}],
"roleBindings":[{"name":"app","clusterRole":"credence:accounts:default","serviceAccounts":["app"]},{"name":"leads","clusterRole":"credence:accounts:default","groups":["leads-{namespace}"]}]}`)
	if got := shared.ready(t, team, "False NoNamespaces"); got.Namespaces != 0 {
		t.Errorf("%+v", got)
	}

	// A namespace that gets the label gets all of it.
	shared.must(t, "", "kubectl", "label", "namespace", first, "e2e-team="+team)
	if got := shared.ready(t, team, "True Complete"); got.Namespaces != 1 || len(got.Incomplete) != 0 {
		t.Errorf("%+v", got)
	}
	client := shared.client(t)
	stored, err := client.CoreV1().Namespaces().Get(t.Context(), first, metav1.GetOptions{})
	if err != nil || stored.Labels["identity.credence.dev/account-use"] != "warn" || stored.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || stored.Labels["identity.credence.dev/workload-identities"] != "enabled" || stored.Labels["identity.credence.dev/profiles"] != "enabled" || stored.Labels["identity.credence.dev/delivery"] != "csi" {
		t.Errorf("labels: %v, %v", stored.Labels, err)
	}
	account, err := client.CoreV1().ServiceAccounts(first).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Errorf("default: %v, %v", account, err)
	}
	shared.must(t, "", "kubectl", "get", "serviceaccountprofile", "app", "-n", first)
	shared.untilAllowed(t, first, "system:serviceaccount:"+first+":app", "list", "services", "")
	binding, err := client.RbacV1().RoleBindings(first).Get(t.Context(), "leads", metav1.GetOptions{})
	if err != nil || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "leads-"+first {
		t.Errorf("leads: %v, %v", binding, err)
	}

	// Deleted accounts, profiles and RoleBindings return at once, not with the look of every ten minutes.
	shared.must(t, "", "kubectl", "delete", "serviceaccount", "app", "-n", first)
	shared.must(t, "", "kubectl", "delete", "serviceaccountprofile", "app", "-n", first)
	shared.must(t, "", "kubectl", "delete", "rolebinding", "leads", "credence-agent", "-n", first)
	shared.must(t, "", "kubectl", "label", "rolebinding", "app", "-n", first, "accounts.credence.dev/namespace-template-")
	eventually(t, func() error {
		_, stderr, code := shared.command(t, "", "kubectl", "get", "serviceaccount/app", "serviceaccountprofile/app", "rolebinding/leads", "rolebinding/credence-agent", "-n", first)
		if code == 0 && !strings.Contains(shared.must(t, "", "kubectl", "get", "rolebindings", "-n", first, "-l", "accounts.credence.dev/namespace-template=rolebinding", "-o", "name"), "/app\n") {
			return errors.New("RoleBinding app has no label")
		}
		if code != 0 {
			return errors.New(stderr)
		}
		return nil
	})

	// A RoleBinding that a user changes is reported as that user's.
	shared.must(t, "", "kubectl", "patch", "rolebinding", "leads", "-n", first, "--type=json", `-p=[{"op":"replace","path":"/subjects/0/name","value":"x"}]`)
	shared.ready(t, team, "False Incomplete", "RoleBinding leads: another field manager has .subjects")
	shared.must(t, "", "kubectl", "delete", "rolebinding", "leads", "-n", first)
	shared.ready(t, team, "True Complete")

	// Objects of others are reported, and stay.
	second := shared.namespace(t)
	shared.must(t, "", "kubectl", "label", "namespace", second, "pod-security.kubernetes.io/enforce=restricted", "identity.credence.dev/account-use=enforce")
	shared.must(t, "", "kubectl", "create", "rolebinding", "app", "-n", second, "--clusterrole=view", "--user=x")
	shared.must(t, "", "kubectl", "label", "namespace", second, "e2e-team="+team)
	got := shared.ready(t, team, "False Incomplete", "RoleBinding app")
	if len(got.Incomplete) != 1 || got.Incomplete[0].Name != second {
		t.Errorf("%+v", got)
	}
	stored, err = client.CoreV1().Namespaces().Get(t.Context(), second, metav1.GetOptions{})
	if err != nil || stored.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || stored.Labels["identity.credence.dev/account-use"] != "enforce" {
		t.Errorf("stricter labels: %v, %v", stored.Labels, err)
	}
	if binding, err = client.RbacV1().RoleBindings(second).Get(t.Context(), "app", metav1.GetOptions{}); err != nil || binding.RoleRef.Name != "view" {
		t.Errorf("the binding of others: %v, %v", binding, err)
	}

	// A second template that contradicts: the older one holds, the newer reports it.
	shared.template(t, team+"-2", `{`+selector+`,"labels":{"identity.credence.dev/account-use":"audit","pod-security.kubernetes.io/warn":"restricted"},"serviceAccounts":[{"name":"default","automountToken":true},{"name":"mail"}]}`)
	got = shared.ready(t, team+"-2", "False Incomplete", "ServiceAccount default differs from the one in the older template "+team,
		"label identity.credence.dev/account-use is audit here, and warn in the older template")
	if len(got.Incomplete) != 2 || got.Incomplete[0].Reason != "Contradiction" {
		t.Errorf("%+v", got)
	}
	shared.must(t, "", "kubectl", "get", "serviceaccount", "mail", "-n", first)
	if account, err = client.CoreV1().ServiceAccounts(first).Get(t.Context(), "default", metav1.GetOptions{}); err != nil || *account.AutomountServiceAccountToken {
		t.Errorf("default: %v, %v", account, err)
	}

	// Without the templates all stays.
	shared.must(t, "", "kubectl", "delete", "namespacetemplate", team, team+"-2")
	shared.must(t, "", "kubectl", "get", "serviceaccount/app", "rolebinding/app", "serviceaccountprofile/app", "-n", first)
	stored, err = client.CoreV1().Namespaces().Get(t.Context(), first, metav1.GetOptions{})
	if err != nil || stored.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || stored.Labels["pod-security.kubernetes.io/warn"] != "restricted" {
		t.Errorf("labels: %v, %v", stored.Labels, err)
	}
}

// The writer of a template needs the rights that it gives, in all namespaces.
func TestNamespaceTemplateWriters(t *testing.T) {
	inTurn(t)
	name := shared.namespace(t)
	writer := "wri-" + name
	template := func(spec string) string {
		return fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"NamespaceTemplate","metadata":{"name":%q},"spec":{"namespaceSelector":{"matchLabels":{"e2e-team":%q}},%s}}`, name, name, spec)
	}
	try := func(user, spec string) (string, int) {
		_, stderr, code := shared.command(t, template(spec), "kubectl", "create", "--dry-run=server", "--as", user, "-f", "-")
		return stderr, code
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	shared.clusterRole(t, "writer-"+name, writer, rule("accounts.credence.dev", "namespacetemplates", "create", "get", "update"))
	bind := rule("rbac.authorization.k8s.io", "clusterroles", "bind")
	bind.ResourceNames = []string{"view"}
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprintf(`{"name":"b%d","clusterRole":"view"}`, i))
	}
	for i, test := range []struct {
		spec, refusal string
		rules         []rbacv1.PolicyRule // with which it is not refused
	}{
		{`"labels":{"pod-security.kubernetes.io/warn":"baseline"}`, "may not patch namespaces in all namespaces", []rbacv1.PolicyRule{rule("", "namespaces", "patch")}},
		{`"labels":{"identity.credence.dev/account-use":"audit"}`, "may not manage-account-use of namespaces", []rbacv1.PolicyRule{rule("", "namespaces", "manage-account-use")}},
		{`"serviceAccounts":[{"name":"default"}]`, "may not create and patch serviceaccounts", []rbacv1.PolicyRule{rule("", "serviceaccounts", "create", "patch")}},
		{`"serviceAccounts":[{"name":"x","profile":{}}]`, "may not create serviceaccountprofiles and use serviceaccounts", []rbacv1.PolicyRule{rule("", "serviceaccounts", "use"), rule("accounts.credence.dev", "serviceaccountprofiles", "create")}},
		{`"serviceAccounts":[{"name":"x","annotations":{"identity.credence.dev/workload-identities":"x"}}]`, "may not use workloadidentities", nil},
		{`"serviceAccounts":[{"name":"x","profile":{"workloadIdentities":["x"]}}]`, "may not use workloadidentities", []rbacv1.PolicyRule{rule("authentication.gardener.cloud", "workloadidentities", "use")}},
		{`"serviceAccounts":[{"name":"x","profile":{"securityContext":{"templateRef":{"name":"x"}}}}]`, "may not use securitycontexttemplates", []rbacv1.PolicyRule{rule("accounts.credence.dev", "securitycontexttemplates", "use")}},
		{`"serviceAccounts":[{"name":"x","profile":{"securityContext":{"windows":{"gmsaCredentialSpecName":"x"}}}}]`, "may not use gmsacredentialspecs", []rbacv1.PolicyRule{rule("windows.k8s.io", "gmsacredentialspecs", "use")}},
		{`"labels":{"identity.credence.dev/workload-identities":"enabled"}`, "may not bind ClusterRole credence:agent:identities", nil},
		{`"roleBindings":[{"name":"x","clusterRole":"view"}]`, "may not create rolebindings", []rbacv1.PolicyRule{rule("rbac.authorization.k8s.io", "rolebindings", "create"), bind}},
		{`"roleBindings":[{"name":"x","clusterRole":"cluster-admin"}]`, "may not bind ClusterRole cluster-admin", nil},
		{`"roleBindings":[` + strings.Join(many, ",") + `,{"name":"last","clusterRole":"edit"}]`, "may not bind ClusterRole view, or not edit, in all namespaces", nil},
	} {
		if stderr, code := try(writer, test.spec); code == 0 || !strings.Contains(stderr, test.refusal) {
			t.Errorf("%s: %d, %s", test.spec, code, stderr)
		}
		if test.rules == nil {
			continue
		}
		shared.clusterRole(t, fmt.Sprintf("writer-%s-%d", name, i), writer, test.rules...)
		eventually(t, func() error {
			if stderr, code := try(writer, test.spec); code != 0 {
				return errors.New(stderr)
			}
			return nil
		})
	}
	// All that a template can have is no more than the API server is willing to check.
	full := `"labels":{"identity.credence.dev/workload-identities":"enabled","identity.credence.dev/account-use":"warn"},
"serviceAccounts":[{"name":"x","annotations":{"identity.credence.dev/workload-identities":"x"},"profile":{"securityContext":{"templateRef":{"name":"x"}}}},
{"name":"y","profile":{"workloadIdentities":["x"],"securityContext":{"windows":{"gmsaCredentialSpecName":"x"}}}}],"roleBindings":[` + strings.Join(many, ",") + `,{"name":"last","clusterRole":"edit"}]`
	if stderr, code := try("", full); code != 0 {
		t.Errorf("a full template: %s", stderr)
	}
	// These are refused whatever rights the writer has.
	for spec, refusal := range map[string]string{
		`"labels":{"team":"a"}`:                                                   "and no others",
		`"labels":{"identity.credence.dev/account-use":"on"}`:                     "and no others",
		`"labels":{"identity.credence.dev/profiles":"disabled"}`:                  "and no others",
		`"labels":{"identity.credence.dev/delivery":"secret"}`:                    "and no others",
		`"labels":{"pod-security.kubernetes.io/enforce":"privileged"}`:            "and no others",
		`"labels":{"pod-security.kubernetes.io/enforce-version":"v1"}`:            "and no others",
		`"serviceAccounts":[{"name":"x","profile":{"username":"a@example.com"}}]`: "a profile of a template has no username",
	} {
		if stderr, code := try("", spec); code == 0 || !strings.Contains(stderr, refusal) {
			t.Errorf("%s: %d, %s", spec, code, stderr)
		}
	}
	for selector, refusal := range map[string]string{
		`{}`: "must select by at least one label",
		`{"matchLabels":{"identity.credence.dev/account-use":"audit"}}`:                                "can't be one that the template sets",
		`{"matchExpressions":[{"key":"identity.credence.dev/account-use","operator":"DoesNotExist"}]}`: "can't be one that the template sets",
	} {
		manifest := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"NamespaceTemplate","metadata":{"name":%q},"spec":{"namespaceSelector":%s,"labels":{"identity.credence.dev/account-use":"enforce"}}}`, name, selector)
		if _, stderr, code := shared.command(t, manifest, "kubectl", "create", "--dry-run=server", "-f", "-"); code == 0 || !strings.Contains(stderr, refusal) {
			t.Errorf("%s: %d, %s", selector, code, stderr)
		}
	}
}

// A process that was taken over gets no further than templates do.
func TestNamespaceTemplateGuards(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	client := shared.clientAs(t, processUser)
	admin := shared.client(t)
	ctx := t.Context()
	need(admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, metav1.CreateOptions{}))(t)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline", "team=a")
	label := func(name, patch string) error {
		return errOf(client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	account := func(namespace, patch string) error {
		return errOf(client.CoreV1().ServiceAccounts(namespace).Patch(ctx, "app", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	binding := func(namespace, kind, role string, subjects ...rbacv1.Subject) error {
		return errOf(client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: subjects,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	profile := func(namespace, spec string) error {
		_, stderr, code := shared.command(t, `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":"x","namespace":"`+namespace+`"},"spec":`+spec+`}`,
			"kubectl", "create", "--dry-run=server", "--as", processUser, "-f", "-")
		if code != 0 && strings.Contains(stderr, "(Forbidden)") {
			return apierrors.NewForbidden(accounts.Resource("serviceaccountprofiles"), "x", errors.New(stderr))
		}
		if code == 0 {
			return nil
		}
		return errors.New(stderr)
	}
	own := rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "app"}
	foreign := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "credence-system", Name: "credence-webhook"}
	const ready = "credence:accounts:default"
	storedAs := func(manager, path, patch string) error {
		return client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Param("dryRun", metav1.DryRunAll).Param("fieldManager", manager).Body([]byte(patch)).Do(ctx).Error()
	}
	stored := func(path, patch string) error { return storedAs("", path, patch) }
	evict := func(namespace string) error {
		return client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
	}
	enabled, unstored, bare := shared.namespace(t), shared.namespace(t), shared.namespace(t)
	shared.must(t, "", "kubectl", "create", "namespace", "credence-node")
	t.Cleanup(func() { shared.must(t, "", "kubectl", "delete", "namespace", "credence-node") })
	shared.must(t, "", "kubectl", "label", "namespace", unstored, "identity.credence.dev/delivery=csi")
	shared.must(t, "", "kubectl", "label", "namespace", enabled, "identity.credence.dev/profiles=enabled")
	shared.must(t, "", "kubectl", "create", "serviceaccount", "app", "-n", enabled)
	for _, n := range []string{enabled, namespace, "kube-system"} {
		if n == "kube-system" {
			shared.must(t, "", "kubectl", "create", "serviceaccount", "app", "-n", n)
		}
		t.Cleanup(func() {
			shared.must(t, "", "kubectl", "delete", "pod", "app", "-n", n, "--force", "--grace-period=0", "--ignore-not-found")
		})
		eventually(t, func() error { // until the policies know the kinds of their parameters
			return errOf(admin.CoreV1().Pods(n).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "x", Image: "x"}}}}, metav1.CreateOptions{}))
		})
	}
	t.Cleanup(func() { shared.must(t, "", "kubectl", "delete", "serviceaccount", "app", "-n", "kube-system") })
	shared.must(t, "", "kubectl", "create", "rolebinding", "own", "-n", namespace, "--clusterrole=view", "--user=x")
	shared.must(t, `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":"app","namespace":"`+namespace+`"},"spec":{"securityContext":{"pod":{"runAsNonRoot":true}}}}`, "kubectl", "create", "-f", "-")
	bindings := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/rolebindings/own"
	profiles := "/apis/accounts.credence.dev/v1alpha1/namespaces/" + namespace + "/serviceaccountprofiles/app"
	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`
	forged := `[{"manager":"credence-namespace-templates","operation":"Apply","apiVersion":"accounts.credence.dev/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:securityContext":{}}}}]`
	forgedByStatus := func() error { // an answer without an effect is as good as a refusal
		answer, err := client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(profiles+"/status").Param("dryRun", metav1.DryRunAll).Body([]byte(`{"metadata":{"managedFields":` + forged + `}}`)).DoRaw(ctx)
		if err == nil && !strings.Contains(string(answer), `"manager":"credence-namespace-templates"`) {
			return apierrors.NewForbidden(accounts.Resource("serviceaccountprofiles"), "app", nil)
		}
		return fmt.Errorf("%s: %w", answer, err)
	}
	group := rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "x"}
	for what, err := range map[string]error{
		"gives the label":      label(namespace, `{"metadata":{"labels":{"identity.credence.dev/profiles":"enabled"}}}`),
		"chooses volumes":      label(namespace, `{"metadata":{"labels":{"identity.credence.dev/delivery":"csi"}}}`),
		"raises a label":       label(namespace, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`),
		"annotates an account": account(namespace, `{"metadata":{"annotations":{"x":"y"}},"automountServiceAccountToken":false}`),
		"binds":                binding(namespace, "ClusterRole", ready, own),
		"binds the agent":      binding(namespace, "ClusterRole", "credence:agent:identities", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "credence-system", Name: "credence-agent"}),
		"makes a profile":      profile(namespace, `{"securityContext":{"pod":{"runAsNonRoot":true}}}`),
		"leaves one out":       stored(profiles, `{"metadata":{"labels":{"accounts.credence.dev/guarded-by":"webhook"}}}`),
		"writes a status":      stored(profiles+"/status", `{"status":{"username":"x"}}`),
		"evicts":               evict(enabled),
	} {
		if err != nil {
			t.Errorf("the process can't do its work: %s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"another label":              label(namespace, `{"metadata":{"labels":{"x":"y"}}}`),
		"takes another's label":      label(namespace, `{"metadata":{"labels":{"team":null}}}`),
		"changes another's label":    label(namespace, `{"metadata":{"labels":{"team":"b"}}}`),
		"lowers a label":             label(namespace, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`),
		"takes a label off":          label(namespace, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`),
		"is softer than the cluster": label(bare, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`),
		"stores tokens":              label(bare, `{"metadata":{"labels":{"identity.credence.dev/delivery":"secret"}}}`),
		"stores tokens again":        label(unstored, `{"metadata":{"labels":{"identity.credence.dev/delivery":"secret"}}}`),
		"takes profiles off":         label(enabled, `{"metadata":{"labels":{"identity.credence.dev/profiles":null}}}`),
		"annotates a namespace":      label(namespace, `{"metadata":{"annotations":{"x":"y"}}}`),
		"labels kube-system":         label("kube-system", `{"metadata":{"labels":{"identity.credence.dev/workload-identities":"enabled"}}}`),
		"labels credence-node":       label("credence-node", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`),
		"labels credence-system":     label("credence-system", `{"metadata":{"labels":{"identity.credence.dev/workload-identities":"enabled"}}}`),
		"labels an account":          account(namespace, `{"metadata":{"labels":{"x":"y"}}}`),
		"gives an account a secret":  account(namespace, `{"imagePullSecrets":[{"name":"x"}]}`),
		"binds another ClusterRole":  binding(namespace, "ClusterRole", "cluster-admin", own),
		"binds edit":                 binding(namespace, "ClusterRole", "edit", own),
		"binds users of accounts":    binding(namespace, "ClusterRole", "credence:serviceaccounts:user", group),
		"binds its own rights":       binding(namespace, "ClusterRole", "credence:profiles", group),
		"owner of a RoleBinding":     stored(bindings, owner),
		"owner of a profile":         stored(profiles, owner),
		"changes a profile":          stored(profiles, `{"spec":{"securityContext":{"pod":{"runAsNonRoot":false}}}}`),
		"changes it as its manager":  storedAs("kubectl-create", profiles, `{"spec":{"securityContext":{"pod":{"runAsNonRoot":false}}}}`),
		"takes a profile's field":    stored(profiles, `{"spec":{"securityContext":null}}`),
		"forges managers":            stored(profiles, `{"metadata":{"managedFields":`+forged+`}}`),
		"forges managers by status":  forgedByStatus(),
		"evicts in another":          evict(namespace),
		"evicts in kube-system":      evict("kube-system"),
		"binds a foreign account":    binding(namespace, "ClusterRole", ready, foreign),
		"binds a user":               binding(namespace, "ClusterRole", ready, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "x"}),
		"binds the agent's role":     binding(namespace, "ClusterRole", "credence:agent:identities", foreign),
		"binds it to a group":        binding(namespace, "ClusterRole", "credence:agent:identities", group),
		"binds it to an account":     binding(namespace, "ClusterRole", "credence:agent:identities", own),
		"binds in kube-system":       binding("kube-system", "ClusterRole", ready, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kube-system", Name: "x"}),
		"binds in credence-system":   binding("credence-system", "ClusterRole", ready, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "credence-system", Name: "x"}),
		"a profile in kube-system":   profile("kube-system", `{}`),
		"a profile with a username":  profile(namespace, `{"username":"x@example.com"}`),
		"a profile with an identity": profile(namespace, `{"workloadIdentities":["x"]}`),
		"a profile of a template":    profile(namespace, `{"securityContext":{"templateRef":{"name":"x"}}}`),
		"makes a namespace":          errOf(client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})),
		"reads Secrets":              errOf(client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})),
		"makes a pod":                errOf(client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})),
		"deletes an account":         client.CoreV1().ServiceAccounts(namespace).Delete(ctx, "app", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Two hundred namespaces at once, and the process killed in their midst.
func TestPlaneNamespaceTemplateOfManyNamespaces(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	const count = 200
	p.template(t, "many", `{"namespaceSelector":{"matchLabels":{"e2e-team":"many"}},"labels":{"pod-security.kubernetes.io/enforce":"baseline"},
"serviceAccounts":[{"name":"default","automountToken":false},{"name":"app"}],"roleBindings":[{"name":"app","clusterRole":"credence:accounts:default","serviceAccounts":["app"]}]}`)
	var manifests strings.Builder
	for i := range count {
		fmt.Fprintf(&manifests, "---\n{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"many-%03d\",\"labels\":{\"e2e-team\":\"many\"}}}\n", i)
	}
	p.must(t, manifests.String(), "kubectl", "create", "-f", "-")
	client := p.client(t).RbacV1()
	bound := func() int {
		list := need(client.RoleBindings("").List(context.WithoutCancel(t.Context()), metav1.ListOptions{FieldSelector: "metadata.name=app"}))(t)
		return len(list.Items)
	}
	eventually(t, func() error {
		if n := bound(); n < 20 {
			return fmt.Errorf("%d namespaces", n)
		}
		return nil
	})
	must(t, syscall.Kill(p.part(t, "profiles").PID, syscall.SIGKILL))
	t.Logf("killed with %d of %d namespaces", bound(), count)
	// A namespace that terminates is left alone: it gets nothing, and is neither counted nor reported as incomplete.
	p.must(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","namespace":"many-199","finalizers":["e2e.example.com/held"]}}`, "kubectl", "create", "-f", "-")
	p.must(t, "", "kubectl", "delete", "namespace", "many-199", "--wait=false")
	eventually(t, func() error {
		if n := bound(); n != count-1 {
			return fmt.Errorf("%d namespaces", n)
		}
		if got := p.ready(t, "many", "True Complete"); got.Namespaces != count-1 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	if phase := p.must(t, "", "kubectl", "get", "namespace", "many-199", "-o", "jsonpath={.status.phase}"); phase != "Terminating" {
		t.Errorf("many-199 is %s", phase)
	}
	p.must(t, "", "kubectl", "patch", "configmap", "held", "-n", "many-199", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	p.must(t, "", "kubectl", "wait", "--for=delete", "namespace/many-199", "--timeout=5m")
}
