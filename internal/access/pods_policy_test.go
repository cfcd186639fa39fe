package access_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/access"
)

// noPolicy is what test/bench compares with: a policy that does nothing.
var noPolicy = &registrationv1.ValidatingAdmissionPolicy{Spec: registrationv1.ValidatingAdmissionPolicySpec{Validations: []registrationv1.Validation{{Expression: "true"}}}}

func podsPolicy(t testing.TB) *registrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	shipped, err := deploy.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range shipped {
		if object.GetKind() == "ValidatingAdmissionPolicy" && object.GetName() == access.Policies+"pods" {
			policy := &registrationv1.ValidatingAdmissionPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy); err != nil {
				t.Fatal(err)
			}
			return policy
		}
	}
	t.Fatal("the policy for pods is not shipped")
	return nil
}

// validator compiles a policy as the API server does.
func validator(t testing.TB, policy *registrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compile := func(expressions []cel.ExpressionAccessor, declared cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		compiled := compiler.CompileCondition(expressions, declared, environment.StoredExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		return compiled
	}
	for _, v := range policy.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, withAuthorizer, environment.StoredExpressions)
	}
	var matcher matchconditions.Matcher
	if conditions := policy.Spec.MatchConditions; len(conditions) > 0 {
		expressions := make([]cel.ExpressionAccessor, len(conditions))
		for i := range conditions {
			expressions[i] = (*matchconditions.MatchCondition)(&conditions[i])
		}
		matcher = matchconditions.NewMatcher(compile(expressions, withAuthorizer), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	}
	var validations, messages, annotations []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, nil)
		if v.MessageExpression != "" {
			messages[len(messages)-1] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	for _, a := range policy.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	return validating.NewValidator(compile(validations, withAuthorizer), matcher, compile(annotations, withAuthorizer), compile(messages, cel.OptionalVariableDeclarations{}), policy.Spec.FailurePolicy, nil)
}

// usersOf is an authorizer by which one user may use each account.
type usersOf string

func (u usersOf) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == string(u) && a.GetVerb() == "use" && a.GetResource() == "serviceaccounts" && a.GetAPIGroup() == "" && a.GetNamespace() == "shop" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// decide has the policy decide about a new pod, as YAML, or about one that was another before.
func decide(t testing.TB, v validating.Validator, name, pod, before string) func() validating.ValidateResult {
	t.Helper()
	read := func(text string) runtime.Object {
		if text == "" {
			return nil
		}
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	operation := admission.Create
	if before != "" {
		operation = admission.Update
	}
	object, old := read(pod), read(before)
	attributes := admission.NewAttributesRecord(object, old, kind, "shop", "p", resource, "", operation, nil, false, &user.DefaultInfo{Name: name, Groups: []string{"system:authenticated"}})
	return func() validating.ValidateResult {
		versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old)}
		return v.Validate(context.Background(), resource, versioned, nil, &corev1.Namespace{}, celconfig.RuntimeCELCostBudget, usersOf("joe"))
	}
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
	v := validator(t, podsPolicy(t))
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
	for name, policy := range map[string]*registrationv1.ValidatingAdmissionPolicy{"nothing": noPolicy, "use": podsPolicy(b)} {
		once := decide(b, validator(b, policy), "joe", ordinaryPod, "")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
