package webhook_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/internal/admission/webhook"
)

func TestQuotas(t *testing.T) {
	c := newCluster()
	const object = `{"metadata":{"name":"picker","managedFields":[{"manager":"kubectl"}]},"spec":{"cpu":1}}`
	created, updated := sent{resource: "shoots", object: object}, sent{resource: "shoots", operation: admissionv1.Update, object: object, old: `{"spec":{}}`}
	for _, each := range []sent{created, updated} {
		if response := ask(t, c.handler(), webhook.QuotasPath, each); !response.Allowed {
			t.Errorf("%+v", response)
		}
	}
	const want = `{"metadata":{"name":"picker"},"spec":{"cpu":1}}`
	if len(c.asked) != 2 || string(c.asked[0].Object.Raw) != want || c.asked[0].OldObject != nil || c.asked[0].Request != "uid-1" || c.asked[0].Resource != "shoots" || string(c.asked[1].OldObject.Raw) != `{"spec":{}}` {
		t.Errorf("reviewed %+v", c.asked)
	}
	c.exceeded = "Quota limits/all: cpu: 12 of 10"
	if response := ask(t, c.handler(), webhook.QuotasPath, created); response.Allowed || response.Result.Code != http.StatusForbidden || response.Result.Message != c.exceeded {
		t.Errorf("%+v", response)
	}
	c.outages["quotareviews"] = apierrors.NewAlreadyExists(schema.GroupResource{Resource: "shoots"}, "picker")
	if response := ask(t, c.handler(), webhook.QuotasPath, created); response.Allowed || response.Result.Code != http.StatusConflict || response.Result.Reason != metav1.StatusReasonAlreadyExists {
		t.Errorf("%+v", response)
	}
	c.outages["quotareviews"] = errors.New("connection refused")
	if response := ask(t, c.handler(), webhook.QuotasPath, created); response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "review Quotas: connection refused") {
		t.Errorf("%+v", response)
	}
	for _, each := range []sent{{resource: "shoots", operation: admissionv1.Delete, old: object}, {resource: "shoots", operation: admissionv1.Update, object: object}} {
		if response := ask(t, c.handler(), webhook.QuotasPath, each); response.Allowed || response.Result.Code != http.StatusBadRequest {
			t.Errorf("%+v", response)
		}
	}
}
