package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// A webhook or a policy of one team keeps its own Secrets from being renewed, and no others.
func TestOneNamespaceHoldsUpNoOther(t *testing.T) {
	inTurn(t)
	const bad, good = 12, 40
	p := shared
	hangs := func(t *testing.T) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) { <-t.Context().Done() }
	}
	issuing := registrationv1.Rule{APIGroups: []string{"authentication.gardener.cloud"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"workloadidentities/token"}}
	for name, interfere := range map[string]func(t *testing.T, namespace string) (inForce func(answer string) bool){
		"a webhook that answers 429": func(t *testing.T, namespace string) func(string) bool {
			return p.webhookFor(t, namespace, registrationv1.Create, issuing, func(w http.ResponseWriter, r *http.Request) {
				var review admissionv1.AdmissionReview
				if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
					Code: 429, Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 2},
				}}
				_ = json.NewEncoder(w).Encode(review)
			})
		},
		"a webhook that hangs": func(t *testing.T, namespace string) func(string) bool {
			return p.webhookFor(t, namespace, registrationv1.Create, issuing, hangs(t))
		},
		"a webhook that hangs when Secrets are written": func(t *testing.T, namespace string) func(string) bool {
			return p.webhookFor(t, namespace, registrationv1.Update, registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}}, hangs(t))
		},
		"a policy": func(t *testing.T, namespace string) func(string) bool {
			return p.policyFor(t, namespace, issuing, metav1.StatusReasonRequestEntityTooLarge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, g := p.namespace(t), p.namespace(t)
			followed := map[string]*tokens{}
			for namespace, secrets := range map[string]int{b: bad, g: good} {
				p.enable(t, namespace)
				p.awsIdentity(t, namespace, "banana", "dev")
				p.letAgent(t, namespace)
				followed[namespace] = followTokens(t, p, namespace)
				fill(t, p, namespace, secrets)
				followed[namespace].await(t, secrets, 1)
			}
			p.awaitForce(t, b, interfere(t, b))
			const second = `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`
			p.patchIdentity(t, b, "banana", second)
			p.patchIdentity(t, g, "banana", second)
			eventually(t, func() error {
				if now := followed[g].of(2); now < good {
					return fmt.Errorf("%d of %d Secrets are renewed; Events: %.2000q", now, good, p.warnings(t, b))
				}
				return nil
			})
			if now := followed[b].of(2); now != 0 {
				t.Errorf("%d Secrets of the other namespace were renewed: nothing interferes with it", now)
			}
		})
	}
}

// awaitForce has a token issued and written until what interferes with it is in force.
func (p plane) awaitForce(t *testing.T, namespace string, inForce func(answer string) bool) {
	t.Helper()
	config := rest.CopyConfig(p.config(t))
	config.Timeout = 2 * time.Second // for what hangs
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		asked := client.CoreV1().RESTClient().Post().MaxRetries(0).AbsPath(tokenPath(namespace, "banana")).Body([]byte(tokenRequest("{}"))).Do(t.Context()).Error()
		_, written := client.CoreV1().Secrets(namespace).Patch(t.Context(), "s0000", types.MergePatchType, annotate("note", "x"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if answer := fmt.Sprint(asked, written); !inForce(answer) {
			return fmt.Errorf("nothing interferes yet: %s", answer)
		}
		return nil
	})
}

// webhookFor has requests of a namespace reviewed by a handler, and reports whether one was.
func (p plane) webhookFor(t *testing.T, namespace string, operation registrationv1.OperationType, rule registrationv1.Rule, review http.HandlerFunc) func(string) bool {
	t.Helper()
	var reviewed atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reviewed.Store(true)
		review(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	webhooks := p.client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	t.Cleanup(func() {
		_ = webhooks.Delete(context.WithoutCancel(t.Context()), "e2e-"+namespace, metav1.DeleteOptions{})
	})
	if _, err := webhooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "e2e.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules:                   []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{operation}, Rule: rule}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](15),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func(string) bool { return reviewed.Load() }
}

// policyFor has requests of a namespace refused by a policy, and reports whether an answer is of it.
func (p plane) policyFor(t *testing.T, namespace string, rule registrationv1.Rule, reason metav1.StatusReason) func(string) bool {
	t.Helper()
	policies := p.client(t).AdmissionregistrationV1()
	name := "e2e-" + namespace
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{
				RuleWithOperations: registrationv1.RuleWithOperations{Operations: []registrationv1.OperationType{registrationv1.Create}, Rule: rule},
			}}},
			Validations: []registrationv1.Validation{{Expression: "false", Message: "refused by a policy of the team", Reason: &reason}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
			MatchResources: &registrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func(answer string) bool { return strings.Contains(answer, "refused by a policy of the team") }
}
