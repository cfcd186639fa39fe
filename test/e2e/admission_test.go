package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The policies of the cluster hold for what the aggregated API serves, token requests included.
func TestPoliciesOfTheClusterApply(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	policies := shared.client(t).AdmissionregistrationV1()
	name := "e2e-" + namespace
	need(policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist},
			}}, ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{"authentication.gardener.cloud"}, APIVersions: []string{"v1alpha1"},
						Resources: []string{"workloadidentities", "workloadidentities/token"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: `object.kind == 'TokenRequest' ? !has(object.spec.duration) || duration(object.spec.duration) <= duration('2h') : object.spec.audiences.all(a, a != 'forbidden')`,
				Message:    "refused by a policy of the cluster",
			}},
		},
	}, metav1.CreateOptions{}))(t)
	need(policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	const refusal = "refused by a policy of the cluster"
	eventually(t, func() error {
		return do(t, shared.config(t), "POST", identitiesPath(namespace)+"?dryRun=All", "application/json", identityJSON("one", "aws", "forbidden")).is(422, refusal)
	})
	shared.create(t, namespace, "one", "aws", "allowed")
	for _, body := range []string{tokenRequest(`{"duration":"3h"}`), `{"spec":{"duration":"3h"}}`} {
		expect(t, do(t, shared.config(t), "POST", tokenPath(namespace, "one"), "application/json", body).is(422, refusal), "token of three hours")
	}
	token(t, shared.config(t), namespace, "one", `{"duration":"1h"}`)
}

// The cluster's own controllers delete what a namespace holds through our API: a namespace that stays is a cluster that
// can not be cleaned up.
func TestNamespacesCanBeDeleted(t *testing.T) {
	inTurn(t)
	client := shared.client(t).CoreV1().Namespaces()
	namespace := need(client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-deleted-"}}, metav1.CreateOptions{}))(t)
	shared.create(t, namespace.Name, "one", "aws", "a")
	shared.create(t, namespace.Name, "two", "aws", "a")
	must(t, client.Delete(t.Context(), namespace.Name, metav1.DeleteOptions{}))
	eventually(t, func() error {
		left, err := client.Get(t.Context(), namespace.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("namespace is still there: %v, %v", left.Status.Conditions, err)
	})
	list := do(t, shared.config(t), "GET", identitiesPath(namespace.Name), "", "")
	if list.Code != 200 || strings.Contains(string(list.Body), `"name":"one"`) {
		t.Errorf("identities of the deleted namespace: %d %s", list.Code, list.Body)
	}
}

// The garbage collector follows owner references through our API.
func TestOwnedIdentitiesAreCollected(t *testing.T) {
	t.Parallel()
	namespace := shared.namespace(t)
	owner := need(shared.client(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{}))(t)
	body := strings.Replace(identityJSON("owned", "aws", "a"), `"name":"owned"`, fmt.Sprintf(`"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]`, owner.UID), 1)
	must(t, do(t, shared.config(t), "POST", identitiesPath(namespace), "application/json", body).is(201), "create")
	must(t, shared.client(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	eventually(t, func() error {
		return do(t, shared.config(t), "GET", identitiesPath(namespace)+"/owned", "", "").is(404)
	})
}
