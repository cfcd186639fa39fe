package namespaces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profiles"
	"github.com/credence-id/credence/test/testkit"
)

func TestMissing(t *testing.T) {
	for _, test := range []struct{ label, wanted, stored, want string }{
		{"pod-security.kubernetes.io/enforce", "baseline", "", "baseline"},
		{"pod-security.kubernetes.io/enforce", "restricted", "baseline", "restricted"},
		{"pod-security.kubernetes.io/enforce", "baseline", "restricted", ""},
		{"pod-security.kubernetes.io/enforce", "baseline", "baseline", ""},
		{"pod-security.kubernetes.io/enforce", "restricted", "custom", ""},
		{"identity.credence.dev/account-use", "warn", "audit", "warn"},
		{"identity.credence.dev/account-use", "warn", "enforce", ""},
		{"identity.credence.dev/workload-identities", "enabled", "", "enabled"},
		{"identity.credence.dev/profiles", "enabled", "", "enabled"},
		{"identity.credence.dev/profiles", "enabled", "enabled", ""},
		{"identity.credence.dev/delivery", "csi", "", "csi"},
		{"identity.credence.dev/delivery", "csi", "secret", "csi"},
	} {
		got := missing(map[string]string{test.label: test.wanted}, map[string]string{test.label: test.stored})
		if got[test.label] != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	for label, want := range map[string]string{"team": "not a label that a template sets", "pod-security.kubernetes.io/enforce-version": "not a label", "identity.credence.dev/account-use": "must be audit or warn or enforce", "identity.credence.dev/delivery": "must be csi", "pod-security.kubernetes.io/warn": "must be baseline or restricted"} {
		if err := checkLabels(map[string]string{label: "privileged"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", label, err)
		}
	}
}

func template(name string, age time.Duration, spec string) *accounts.NamespaceTemplate {
	t := &accounts.NamespaceTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
	if err := yaml.UnmarshalStrict([]byte(spec), &t.Spec); err != nil {
		panic(err)
	}
	return t
}

const teams = `
namespaceSelector: {matchLabels: {team: a}}
labels: {identity.credence.dev/workload-identities: enabled, identity.credence.dev/account-use: enforce}
serviceAccounts:
- name: default
  automountToken: false
- name: app
  annotations: {identity.credence.dev/workload-identities: 'app-{namespace}'}
  profile: {workloadIdentities: ['app-{namespace}'], securityContext: {pod: {runAsUser: 20017}}}
roleBindings:
- {name: app, clusterRole: 'credence:accounts:default', serviceAccounts: [app]}
- {name: leads, clusterRole: view, groups: ['leads-{namespace}']}
`

func TestWanted(t *testing.T) {
	objects := testkit.Need(wanted(&template("x", 0, teams).Spec, "shop"))(t)
	var got []string
	for _, object := range objects {
		text := testkit.Need(json.Marshal(object.Object))(t)
		got = append(got, string(text))
	}
	want := []string{
		`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":"app","namespace":"shop"},"spec":{"securityContext":{"pod":{"runAsUser":20017}},"workloadIdentities":["app-shop"]}}`,
		`{"apiVersion":"v1","automountServiceAccountToken":false,"kind":"ServiceAccount","metadata":{"name":"default","namespace":"shop"}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"annotations":{"identity.credence.dev/workload-identities":"app-shop"},"name":"app","namespace":"shop"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"labels":{"accounts.credence.dev/namespace-template":"rolebinding"},"name":"app","namespace":"shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"credence:accounts:default"},"subjects":[{"kind":"ServiceAccount","name":"app","namespace":"shop"}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"labels":{"accounts.credence.dev/namespace-template":"rolebinding"},"name":"leads","namespace":"shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"leads-shop"}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"labels":{"accounts.credence.dev/namespace-template":"rolebinding"},"name":"credence-agent","namespace":"shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"credence:agent:identities"},"subjects":[{"kind":"ServiceAccount","name":"credence-agent","namespace":"credence-system"}]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for spec, want := range map[string]string{
		"serviceAccounts: [{name: 'x-{cluster}'}]":                                                                                "{cluster} is not a placeholder",
		"serviceAccounts: [{name: 'a-{namespace}'}, {name: a-shop}]":                                                              "ServiceAccount a-shop is in the template twice",
		"labels: {identity.credence.dev/workload-identities: enabled}\nroleBindings: [{name: credence-agent, clusterRole: view}]": "RoleBinding credence-agent is in the template twice",
	} {
		if _, err := wanted(&template("x", 0, spec).Spec, "shop"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

func TestSplit(t *testing.T) {
	old := template("old", time.Hour, teams)
	for name, test := range map[string]struct {
		spec           string
		labels         map[string]string
		objects        []key
		contradictions []string
	}{
		"the same": {"serviceAccounts: [{name: default, automountToken: false}]", nil, []key{{"ServiceAccount", "default"}}, nil},
		"otherwise": {
			"labels: {identity.credence.dev/account-use: audit, pod-security.kubernetes.io/warn: baseline}\nserviceAccounts: [{name: default, automountToken: true}, {name: mail}]",
			map[string]string{"pod-security.kubernetes.io/warn": "baseline"}, []key{{"ServiceAccount", "mail"}},
			[]string{"ServiceAccount default differs from the one in the older template old", "label identity.credence.dev/account-use is audit here, and enforce in the older template old"},
		},
	} {
		labels, objects, contradictions, err := split(template("new", 0, test.spec), []*accounts.NamespaceTemplate{old}, "shop")
		testkit.Must(t, err)
		var keys []key
		for _, object := range objects {
			keys = append(keys, keyOf(object))
		}
		if diff := cmp.Diff([]any{test.labels, test.objects, test.contradictions}, []any{labels, keys, contradictions}); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if byAge(old, template("new", 0, teams)) >= 0 || byAge(template("a", 0, teams), template("b", 0, teams)) >= 0 {
		t.Error("templates are not in order")
	}
}

func TestOwned(t *testing.T) {
	namespace := profiles.Metadata("Namespace")
	namespace.Labels = map[string]string{"mine": "1", "theirs": "2"}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, label string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:%s":{}}}}`, label))}
	}
	namespace.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(fieldManager, metav1.ManagedFieldsOperationApply, "mine"), entry("kubectl", metav1.ManagedFieldsOperationApply, "theirs"), entry(fieldManager, metav1.ManagedFieldsOperationUpdate, "theirs"),
	}
	if diff := cmp.Diff(map[string]string{"mine": "1"}, owned(namespace)); diff != "" {
		t.Error(diff)
	}
}

// writer notes what is applied, and refuses some of it.
type writer struct {
	client.Client
	refuse  string
	written []string
}

func (w *writer) Apply(_ context.Context, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	content := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, content); err != nil {
		return err
	}
	what := content.GetKind() + " " + content.GetName()
	if content.GetKind() == "Namespace" {
		what = strings.Join(slices.Sorted(maps.Keys(content.GetLabels())), " ")
	}
	if w.refuse != "" && strings.Contains(what, w.refuse) {
		return apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	}
	w.written = append(w.written, what)
	return nil
}

// reads answers reads of a namespace without labels.
type reads struct{ client.Reader }

func (reads) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// A label that is refused keeps no other from its namespace, and rights are given where all that limits them is there.
func TestWrite(t *testing.T) {
	const psa = "pod-security.kubernetes.io/warn"
	old := template("old", time.Hour, "namespaceSelector: {matchLabels: {team: a}}\nserviceAccounts: [{name: default, automountToken: true}]")
	for refuse, want := range map[string][]string{
		"":                      {"identity.credence.dev/account-use", "identity.credence.dev/account-use " + psa, "ServiceAccountProfile app", "ServiceAccount app", "RoleBinding app"},
		"account-use":           {psa, "ServiceAccountProfile app", "ServiceAccount app"},
		"ServiceAccountProfile": {"identity.credence.dev/account-use", "identity.credence.dev/account-use " + psa, "ServiceAccount app"},
		"RoleBinding":           {"identity.credence.dev/account-use", "identity.credence.dev/account-use " + psa, "ServiceAccountProfile app", "ServiceAccount app"},
	} {
		w := &writer{refuse: refuse}
		c := &Controller{client: w, live: reads{}}
		problem := c.write(t.Context(), template("x", 0, `
namespaceSelector: {matchLabels: {team: a}}
labels: {identity.credence.dev/account-use: enforce, pod-security.kubernetes.io/warn: baseline}
serviceAccounts: [{name: default, automountToken: false}, {name: app, profile: {}}]
roleBindings: [{name: app, clusterRole: view, serviceAccounts: [app]}]`), []*accounts.NamespaceTemplate{old}, profiles.Metadata("Namespace"))
		if diff := cmp.Diff(want, w.written); diff != "" {
			t.Errorf("%s refused:\n%s", refuse, diff)
		}
		if problem == nil || strings.Contains(problem.Message, "no") != (refuse != "") || strings.Contains(problem.Message, "RoleBindings are not written") != (refuse != "" && refuse != "RoleBinding") {
			t.Errorf("%s refused: %+v", refuse, problem)
		}
	}
}

// deletes reports a deletion while something is applied, once.
type deletes struct {
	*writer
	report func()
}

func (d *deletes) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if d.report != nil {
		d.report()
		d.report = nil
	}
	return d.writer.Apply(ctx, object, options...)
}

// List lists the template x.
func (d *deletes) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*accounts.NamespaceTemplateList).Items = []accounts.NamespaceTemplate{*template("x", 0, deletable)}
	return nil
}

const deletable = "serviceAccounts: [{name: '{namespace}-app'}, {name: job, profile: {}}]\nroleBindings: [{name: '{namespace}-leads', clusterRole: view}]"

// A namespace is written again where something that its template gives was deleted, also while it was written, but not twice in a short time.
func TestDeleted(t *testing.T) {
	now := time.Unix(1e9, 0)
	w := &deletes{writer: &writer{}}
	c := &Controller{client: w, live: reads{}, Now: func() time.Time { return now }, done: map[string]map[string]visit{}}
	shop := profiles.Metadata("Namespace")
	shop.Name = "shop"
	writes := func(want bool) {
		t.Helper()
		before := len(w.written)
		if problem := c.visit(t.Context(), template("x", 0, deletable), nil, shop); problem != nil || len(w.written) > before != want {
			t.Errorf("written: %v, want that to be %v; %+v", w.written[before:], want, problem)
		}
	}
	deleted := func(namespace, kind, name string, want map[string]time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, c.changed(t.Context(), namespace, key{kind, name})); diff != "" {
			t.Error(diff)
		}
	}
	no := map[string]time.Duration{}
	after := func(d time.Duration) map[string]time.Duration { return map[string]time.Duration{"x": d} }

	w.report = func() { deleted("shop", "ServiceAccount", "shop-app", after(apart)) }
	writes(true)
	writes(false)
	now = now.Add(10 * time.Second)
	if got := c.untilChanged("x"); got != apart-10*time.Second {
		t.Errorf("looked at again after %s", got)
	}
	deleted("shop", "ServiceAccountProfile", "job", after(apart-10*time.Second))
	now = now.Add(20 * time.Second)
	writes(true)
	if got := c.untilChanged("x"); got != recheck {
		t.Errorf("looked at again after %s", got)
	}

	now = now.Add(apart)
	for _, other := range [][]string{{"other", "ServiceAccount", "job"}, {"shop", "ServiceAccount", "other-app"}, {"shop", "ServiceAccountProfile", "shop-app"}, {"shop", "ServiceAccount", "mail"},
		{"shop", "RoleBinding", "shop-app"}, {"shop", "RoleBinding", "credence-agent"}} {
		deleted(other[0], other[1], other[2], no)
		writes(false)
	}
	deleted("shop", "ServiceAccount", "job", after(pause))
	writes(true)
	writes(false)
	now = now.Add(apart)
	deleted("shop", "RoleBinding", "shop-leads", after(pause))
	writes(true)
	writes(false)
	// In a loop.
	written := len(w.written)
	for range 120 {
		now = now.Add(time.Second)
		c.changed(t.Context(), "shop", key{"ServiceAccount", "job"})
		_ = c.visit(t.Context(), template("x", 0, deletable), nil, shop)
	}
	if got := (len(w.written) - written) / 4; got != 4 {
		t.Errorf("written %d times in two minutes", got)
	}
}

// The agent's RoleBinding is of the template where that has the label.
func TestGives(t *testing.T) {
	for spec, want := range map[string]bool{"labels: {identity.credence.dev/workload-identities: enabled}": true, "labels: {identity.credence.dev/profiles: enabled}": false} {
		if got := gives(&template("x", 0, spec).Spec, "shop", key{"RoleBinding", "credence-agent"}); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}

// Labels of a RoleBinding give no rights, other subjects have others.
func TestRebound(t *testing.T) {
	binding := func(label string, names ...string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": label}}}
		for _, name := range names {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "Group", Name: name})
		}
		return b
	}
	if rebound(binding("b", "x"), binding("c", "x")) || !rebound(binding("b", "x"), binding("b")) || !rebound(binding("b", "x"), binding("b", "x", "y")) {
		t.Error("a wrong answer")
	}
}

// failing can't list.
type failing struct{ client.Client }

func (failing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if list, ok := list.(*accounts.NamespaceTemplateList); ok {
		list.Items = []accounts.NamespaceTemplate{*template("x", 0, teams)}
		return nil
	}
	return apierrors.NewTimeoutError("x", 1)
}

// Namespaces that can't be listed are no fault of the template: it is tried again.
func TestNamespacesCannotBeListed(t *testing.T) {
	c := &Controller{client: failing{}}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "x"}}); !apierrors.IsTimeout(err) {
		t.Error(err)
	}
}

func TestStatus(t *testing.T) {
	var many []accounts.IncompleteNamespace
	for i := range 150 {
		many = append(many, accounts.IncompleteNamespace{Name: fmt.Sprintf("n-%03d", 149-i), Reason: reasonConflict, Message: "label x: is another's"})
	}
	for want, r := range map[string]report{
		"False Invalid":      {invalid: "spec.namespaceSelector: it selects all namespaces: name a label"},
		"False NoNamespaces": {},
		"False Incomplete":   {namespaces: 200, incomplete: many},
		"True Complete":      {namespaces: 200},
	} {
		got := status(accounts.NamespaceTemplateStatus{}, 3, r)
		ready := got.Conditions[0]
		if string(ready.Status)+" "+ready.Reason != want || ready.Message == "" || ready.ObservedGeneration != 3 || len(got.Incomplete) > 100 || int(got.Namespaces) != r.namespaces {
			t.Errorf("want %s: %+v", want, ready)
		}
	}
	if got := status(accounts.NamespaceTemplateStatus{}, 1, report{namespaces: 200, incomplete: many}); got.Incomplete[0].Name != "n-000" || len(got.Incomplete) != 100 {
		t.Errorf("incomplete: %d, %v", len(got.Incomplete), got.Incomplete[0])
	}
	if _, err := selectorOf(template("x", 0, "namespaceSelector: {}")); err == nil {
		t.Error("an empty selector selects all")
	}
}

func TestSort(t *testing.T) {
	resource := schema.GroupResource{Resource: "serviceaccounts"}
	terminating := apierrors.NewForbidden(resource, "x", fmt.Errorf("it terminates"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
	for want, err := range map[string]error{
		"gone": terminating, reasonForbidden: apierrors.NewForbidden(resource, "x", fmt.Errorf("no")), reasonConflict: apierrors.NewApplyConflict(nil, "x"),
		reasonInvalid: apierrors.NewInvalid(schema.GroupKind{}, "x", nil), reasonFailed: apierrors.NewTimeoutError("x", 1),
	} {
		var found problems
		if gone := sort(err, "x", &found); gone != (want == "gone") || !gone && found.reason != want {
			t.Errorf("%s: %v, %+v", want, gone, found)
		}
	}
}
