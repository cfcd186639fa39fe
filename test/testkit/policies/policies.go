// Package policies decides about pods by a ValidatingAdmissionPolicy as the API server does, without one.
package policies

import (
	"context"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
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
)

// Shipped is the policy of deploy/base with that name.
func Shipped(t testing.TB, name string) *registrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	shipped, err := deploy.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range shipped {
		if object.GetKind() == "ValidatingAdmissionPolicy" && object.GetName() == name {
			policy := &registrationv1.ValidatingAdmissionPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy); err != nil {
				t.Fatal(err)
			}
			return policy
		}
	}
	t.Fatalf("the policy %s is not shipped", name)
	return nil
}

// Policy is one that is compiled.
type Policy struct{ validator validating.Validator }

// Compile compiles a policy.
func Compile(t testing.TB, policy *registrationv1.ValidatingAdmissionPolicy) Policy {
	t.Helper()
	return CompileOn(t, policy, environment.DefaultCompatibilityVersion())
}

// CompileOn compiles a policy with what CEL has in a version of Kubernetes, such as 1.33.
func CompileOn(t testing.TB, policy *registrationv1.ValidatingAdmissionPolicy, kubernetes *version.Version) Policy {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	ofMessages := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil}
	all := ofMessages
	all.HasAuthorizer = true
	compile := func(expressions []cel.ExpressionAccessor, declared cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		compiled := compiler.CompileCondition(expressions, declared, environment.NewExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			t.Fatalf("policy %s, on Kubernetes %s: %v", policy.Name, kubernetes, errs)
		}
		return compiled
	}
	for _, v := range policy.Spec.Variables {
		variable := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, all, environment.NewExpressions)
		if variable.Error != nil {
			t.Fatalf("policy %s, on Kubernetes %s: variable %s: %v", policy.Name, kubernetes, v.Name, variable.Error)
		}
	}
	var matcher matchconditions.Matcher
	if conditions := policy.Spec.MatchConditions; len(conditions) > 0 {
		expressions := make([]cel.ExpressionAccessor, len(conditions))
		for i := range conditions {
			expressions[i] = (*matchconditions.MatchCondition)(&conditions[i])
		}
		matcher = matchconditions.NewMatcher(compile(expressions, all), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
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
	return Policy{validating.NewValidator(compile(validations, all), matcher, compile(annotations, all), compile(messages, ofMessages), policy.Spec.FailurePolicy, nil)}
}

// Pod reads a pod from YAML; it is nil without a text.
func Pod(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	if text == "" {
		return nil
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// Request is what a policy decides about: a pod of the namespace shop, which is new, or was another before.
type Request struct {
	User        string
	Pod, Before *corev1.Pod
	Param       runtime.Object
	Authorizer  authorizer.UnconditionalAuthorizer
}

// Decide has the policy decide.
func (p Policy) Decide(r Request) validating.ValidateResult {
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	operation := admission.Create
	var object, old runtime.Object = r.Pod, nil
	if r.Before != nil {
		operation, old = admission.Update, r.Before
	}
	attributes := admission.NewAttributesRecord(object, old, kind, "shop", "p", resource, "", operation, nil, false, &user.DefaultInfo{Name: r.User, Groups: []string{"system:authenticated"}})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old)}
	return p.validator.Validate(context.Background(), resource, versioned, r.Param, &corev1.Namespace{}, celconfig.RuntimeCELCostBudget, r.Authorizer)
}

// Refused reports whether a result refuses the request.
func Refused(result validating.ValidateResult) bool {
	for _, d := range result.Decisions {
		if d.Action == validating.ActionDeny {
			return true
		}
	}
	return false
}
