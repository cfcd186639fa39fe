package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The cluster's webhooks are called for what the aggregated API serves, and see no token.
func TestWebhooksOfTheClusterApply(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	seen := make(chan string, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		seen <- review.Request.Resource.Resource + "/" + review.Request.SubResource + " " + string(review.Request.Object.Raw)
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: !strings.Contains(string(review.Request.Object.Raw), "forbidden"),
			Result: &metav1.Status{Message: "refused by a webhook of the cluster"},
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer server.Close()
	name := "e2e-" + namespace
	webhooks := shared.client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	need(webhooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "e2e.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{APIGroups: []string{"authentication.gardener.cloud"}, APIVersions: []string{"v1alpha1"},
					Resources: []string{"workloadidentities", "workloadidentities/token"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	eventually(t, func() error {
		got := do(t, shared.config(t), "POST", identitiesPath(namespace)+"?dryRun=All", "application/json", identityJSON("one", "aws", "forbidden"))
		if got.Code < 400 || !strings.Contains(string(got.Body), "refused by a webhook of the cluster") {
			return fmt.Errorf("identity with a forbidden audience: %d %s", got.Code, got.Body)
		}
		return nil
	})
	shared.create(t, namespace, "one", "aws", "allowed")
	issued := token(t, shared.config(t), namespace, "one", `{}`).Status.Token
	close(seen)
	tokens := 0
	for object := range seen {
		if strings.HasPrefix(object, "workloadidentities/token ") {
			tokens++
		}
		if strings.Contains(object, issued) {
			t.Error("a webhook has seen the token")
		}
	}
	if tokens == 0 {
		t.Error("the webhook was not called for the token")
	}
}
