package access_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/test/testkit/policies"
)

// noPolicy is what test/bench compares with: a policy that does nothing.
var noPolicy = &registrationv1.ValidatingAdmissionPolicy{Spec: registrationv1.ValidatingAdmissionPolicySpec{Validations: []registrationv1.Validation{{Expression: "true"}}}}

// usersOf is an authorizer by which one user may use each account.
type usersOf string

func (u usersOf) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == string(u) && a.GetVerb() == "use" && a.GetResource() == "serviceaccounts" && a.GetAPIGroup() == "" && a.GetNamespace() == "shop" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// decide has the policy decide about a new pod, as YAML, or about one that was another before.
func decide(t testing.TB, p policies.Policy, name, pod, before string) func() validating.ValidateResult {
	t.Helper()
	request := policies.Request{User: name, Pod: policies.Pod(t, pod), Before: policies.Pod(t, before), Authorizer: usersOf("joe")}
	return func() validating.ValidateResult { return p.Decide(request) }
}

const (
	containerFields = `image: one, env: [{name: LOG, value: info}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: DB, valueFrom: {secretKeyRef: {name: db, key: url}}}], envFrom: [{secretRef: {name: db}}]}`
	ordinaryPod     = `
metadata: {generateName: p-, labels: {app: service}}
spec:
  serviceAccountName: cart
  volumes:
  - {name: data, emptyDir: {}}
  - {name: tls, secret: {secretName: tls}}
  - {name: api, projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}, {secret: {name: more}}]}}
  containers:
  - {name: main, ` + containerFields + `
  - {name: proxy, ` + containerFields + `
`
)

// Of pods that are allowed the API server evaluates the match condition alone, which leaves over each pod that a validation refuses.
func TestAllowedPodsAreDecidedByTheMatchCondition(t *testing.T) {
	v := policies.Compile(t, policies.Shipped(t, access.Policies+"pods"))
	with := func(old, new string) string {
		if !strings.Contains(ordinaryPod, old) {
			t.Fatalf("the pod has no %q", old)
		}
		return strings.Replace(ordinaryPod, old, new, 1)
	}
	allowed := map[string][3]string{
		"a user with the right":              {"joe", ordinaryPod, ""},
		"the account itself":                 {"system:serviceaccount:shop:cart", ordinaryPod, ""},
		"a pod of a kubelet's own folder":    {"jane", with("  serviceAccountName: cart\n", ""), ""},
		"another label":                      {"jane", with("app: service", "app: other"), ordinaryPod},
		"another image, with the right":      {"joe", with("image: one", "image: two"), ordinaryPod},
		"ten thousand variables":             {"joe", with("env: [", "env: ["+strings.Repeat("{name: LOG_LEVEL, value: info}, ", 10000)), ""},
		"a Secret of the same name in parts": {"joe", with("secretName: tls", "secretName: my-sa-token.till"), ""},
	}
	for what, c := range allowed {
		if got := decide(t, v, c[0], c[1], c[2])(); len(got.Decisions)+len(got.AuditAnnotations) > 0 {
			t.Errorf("%s: more than the match condition is evaluated: %+v", what, got)
		}
	}
	refused := map[string][3]string{
		"a user without the right":        {"jane", ordinaryPod, ""},
		"another account":                 {"system:serviceaccount:shop:till", ordinaryPod, ""},
		"the account of another":          {"system:serviceaccount:other:cart", ordinaryPod, ""},
		"another image":                   {"jane", with("image: one", "image: two"), ordinaryPod},
		"a Secret as a volume":            {"joe", with("secretName: tls", "secretName: sa-token.till"), ""},
		"a Secret in a projected volume":  {"joe", with("name: more", "name: sa-token-2.till"), ""},
		"a Secret in a variable":          {"joe", with("name: db, key", "name: sa-token.till, key"), ""},
		"a Secret as variables":           {"joe", with("name: db}}]}", "name: sa-token.till}}]}"), ""},
		"a Secret in an init container":   {"joe", ordinaryPod + "  initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: sa-token.till}}]}]", ""},
		"a Secret of an account's prefix": {"joe", with("secretName: tls", "secretName: sa-token.cart-2"), ""},
	}
	for what, c := range refused {
		got := decide(t, v, c[0], c[1], c[2])()
		if !slices.ContainsFunc(got.Decisions, func(d validating.PolicyDecision) bool {
			return d.Action == validating.ActionDeny && d.Evaluation == validating.EvalDeny
		}) {
			t.Errorf("%s: %+v", what, got)
		}
		if len(got.AuditAnnotations) != 1 || got.AuditAnnotations[0].Value != "shop/cart" {
			t.Errorf("%s: noted %+v", what, got.AuditAnnotations)
		}
	}
	for _, name := range []string{"sa-token.cart", "sa-token-mine.cart", "sa-token-of-mine", "sa-tokens.till"} {
		for _, d := range decide(t, v, "joe", with("secretName: tls", "secretName: "+name), "")().Decisions {
			if d.Action != validating.ActionAdmit {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// BenchmarkPolicyOfPods is what the evaluation costs, without the authorizer, beside that of a policy that does nothing.
func BenchmarkPolicyOfPods(b *testing.B) {
	for name, policy := range map[string]*registrationv1.ValidatingAdmissionPolicy{"nothing": noPolicy, "use": policies.Shipped(b, access.Policies+"pods")} {
		once := decide(b, policies.Compile(b, policy), "joe", ordinaryPod, "")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
