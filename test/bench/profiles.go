package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

const (
	// profilePodsAtATime are how many pods are created at a time.
	profilePodsAtATime = 4
	profileAuthor      = "bench-author"
	profilesPath       = "/apis/accounts.credence.dev/v1alpha1/namespaces/%s/serviceaccountprofiles"
	// useLimit is how much CPU of kube-apiserver the right to use accounts may cost per pod, in microseconds.
	useLimit = 100
	// profiledAccount has a profile, podAccount has none.
	profiledAccount = "profile-0"
)

// namespaceKind is a namespace in which pods of some accounts are created.
type namespaceKind struct {
	name, label, value string
	// prepare makes what is in it; the function removes what would outlive it.
	prepare  func(*world, context.Context) (remove func(), err error)
	accounts []string
}

// measureProfiles creates pods as dry runs, by a user with the role admin: in a namespace with a policy that does nothing, in one where the
// right to use accounts is needed, and in some with profiles, of an account with one and of one without.
func measureProfiles(ctx context.Context, s settings, p plane, t *table) error {
	kube, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	webhook, err := p.pid("webhook")
	if err != nil {
		return err
	}
	s.round, s.rounds = 2*s.round, max(2, s.rounds/2)
	counts := []int{1, 20, 100}
	kinds := []namespaceKind{
		{"noop", "app", "bench", (*world).bindNoop, []string{podAccount}},
		{"use", "identity.credence.dev/account-use", "enforce", (*world).waitForUse, []string{podAccount}},
	}
	for _, n := range counts {
		create := func(w *world, ctx context.Context) (func(), error) { return func() {}, w.createProfiles(ctx, n) }
		kinds = append(kinds, namespaceKind{fmt.Sprint(n), "identity.credence.dev/profiles", "enabled", create, []string{podAccount, profiledAccount}})
	}
	var subjects []subject
	for _, kind := range kinds {
		w, remove, err := newWorld(ctx, p, map[string]string{kind.label: kind.value})
		if err != nil {
			return err
		}
		defer remove()
		undo, err := kind.prepare(w, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		defer undo()
		if err := w.becomeAuthor(ctx); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		for _, account := range kind.accounts {
			subjects = append(subjects, subject{name: kind.name + account, once: w.podDryRun(account), pids: []int{kube}, aside: []int{webhook}})
		}
	}
	results, err := rounds(ctx, s, profilePodsAtATime, subjects)
	if err != nil {
		return err
	}
	noop := results["noop"+podAccount]
	use := results["use"+podAccount]
	t.add(row{what: "use of accounts: CPU added per pod over a policy that does nothing", unit: "µs", ours: micro(use.cpu - noop.cpu), peer: "limit", theirs: useLimit, target: atMost(1)})
	for _, n := range counts {
		with, without := results[fmt.Sprint(n)+profiledAccount], results[fmt.Sprint(n)+podAccount]
		what := fmt.Sprintf("profiles, %d in the namespace: ", n)
		limit := target{}
		if n == 20 {
			limit = atMost(1.2)
		}
		t.add(row{what: what + "time per pod of an account with one", unit: "µs", ours: 1e6 / with.perSecond, peer: "without one", theirs: 1e6 / without.perSecond, target: limit})
		t.add(row{what: what + "CPU per pod of an account with one", unit: "µs", ours: micro(with.cpu + with.aside), peer: "without one", theirs: micro(without.cpu + without.aside), target: limit})
		t.add(row{what: what + "CPU of kube-apiserver per pod of an account without one", unit: "µs", ours: micro(without.cpu), peer: "policy that does nothing", theirs: micro(noop.cpu)})
	}
	return nil
}

// becomeAuthor has the user create all that is posted from then on.
func (w *world) becomeAuthor(ctx context.Context) error {
	if err := w.bind(ctx, "author", "ClusterRole", "admin", map[string]any{"kind": "User", "name": profileAuthor}); err != nil {
		return err
	}
	w.client = w.as(profileAuthor)
	return until(ctx, "the user may create pods", 30*time.Second, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		return true, w.podDryRun(podAccount)(ctx)
	})
}

// as is the client of another user.
func (c *client) as(user string) *client {
	caller, other := *c.http, *c
	caller.Transport = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}, c.http.Transport)
	other.http = &caller
	return &other
}

// account makes a service account.
func (w *world) account(ctx context.Context, name string) error {
	return w.objects.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
}

func (w *world) accountPod(account, secret string) []byte {
	body := bytes.Replace(podBody(byOurs), []byte(`"serviceAccountName":"`+podAccount+`"`), []byte(`"serviceAccountName":"`+account+`"`), 1)
	return bytes.ReplaceAll(body, []byte(`"name":"db"`), []byte(`"name":"`+secret+`"`))
}

func (w *world) podDryRun(account string) func(context.Context) error {
	body, url := w.accountPod(account, "db"), w.podsURL("?dryRun=All")
	return func(ctx context.Context) error {
		_, err := w.post(ctx, url, body)
		return err
	}
}

// bindNoop has a policy that does nothing decide about pods of the namespace.
func (w *world) bindNoop(ctx context.Context) (func(), error) {
	if err := w.account(ctx, podAccount); err != nil {
		return nil, err
	}
	name, fail := w.namespace, registrationv1.Fail
	rule := registrationv1.NamedRuleWithOperations{RuleWithOperations: registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{registrationv1.Create},
		Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	return w.install(ctx, &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{rule}},
			Validations: []registrationv1.Validation{{Expression: "true"}},
		},
	}, &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny}, MatchResources: &registrationv1.MatchResources{NamespaceSelector: w.here()},
		},
	})
}

// waitForUse waits until a user who may create pods, and not use the account, is refused.
func (w *world) waitForUse(ctx context.Context) (func(), error) {
	const stranger = "bench-stranger"
	if err := w.account(ctx, podAccount); err != nil {
		return nil, err
	}
	if err := w.bind(ctx, "stranger", "ClusterRole", "edit", map[string]any{"kind": "User", "name": stranger}); err != nil {
		return nil, err
	}
	return func() {}, until(ctx, "the policies decide", time.Minute, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := w.as(stranger).post(ctx, w.podsURL("?dryRun=All"), w.accountPod(podAccount, "db"))
		return err != nil && strings.Contains(err.Error(), "may not use service account"), nil
	})
}

// createProfiles makes profiles that pods of these parts meet, and waits until the policy knows them.
func (w *world) createProfiles(ctx context.Context, n int) error {
	if err := many(ctx, n, 4, func(ctx context.Context, i int) error {
		spec := map[string]any{
			"securityContext": map[string]any{"mode": "Enforce", "pod": map[string]any{"runAsNonRoot": true},
				"container": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []string{"ALL"}}}},
			"secrets": map[string]any{"allowed": []string{"db"}},
		}
		_, err := w.create(ctx, fmt.Sprintf(profilesPath, w.namespace), object("accounts.credence.dev/v1alpha1", "ServiceAccountProfile", fmt.Sprintf("profile-%d", i), spec))
		return err
	}); err != nil {
		return err
	}
	// The process has looked at them, so that it works no more while pods are created.
	if err := until(ctx, "the process has looked at the profiles", time.Minute, 500*time.Millisecond, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.cluster+fmt.Sprintf(profilesPath, w.namespace), nil)
		if err != nil {
			return false, err
		}
		list, err := send(w.http, request, http.StatusOK)
		return bytes.Count(list, []byte(`"type":"Enforced"`)) == n && bytes.Count(list, []byte(`"accounts.credence.dev/guarded-by":"webhook"`)) == max(0, n-accounts.PolicyProfiles), err
	}); err != nil {
		return err
	}
	for _, account := range []string{podAccount, profiledAccount} {
		if err := w.account(ctx, account); err != nil {
			return err
		}
	}
	return until(ctx, "profiles hold", time.Minute, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := w.post(ctx, w.podsURL("?dryRun=All"), w.accountPod(profiledAccount, "another"))
		return err != nil && strings.Contains(err.Error(), "another"), nil
	})
}
