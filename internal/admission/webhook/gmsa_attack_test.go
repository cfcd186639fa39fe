package webhook_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
)

// One request of somebody who may create pods must not become thousands of requests to the API.
func TestManyNamesCostFewReads(t *testing.T) {
	c := gmsaCluster()
	handler := c.handler()
	object := windowsPod("", "", func(pod map[string]any) {
		var containers []any
		for i := range 2000 {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "securityContext": windowsOptions(fmt.Sprintf("none%d", i), "")})
		}
		pod["spec"].(map[string]any)["containers"] = containers
	})
	if got := ask(t, handler, webhook.MutatePath, gmsaReview("jane", object)); got.Allowed {
		t.Error("it is admitted")
	}
	if reads := c.reads.Load(); reads > 28 {
		t.Errorf("%d objects were read to refuse one pod: policies let no more than 28 names pass", reads)
	}
	ask(t, handler, webhook.ValidatePath, gmsaReview("jane", object))
	if reviews := c.reviews.Load(); reviews > 28 {
		t.Errorf("%d reviews were made to refuse one pod", reviews)
	}
}

// The listener answers whoever reaches it, so what a review costs must be bounded by its size.
func TestMemoryOfReviews(t *testing.T) {
	body := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","resource":{"version":"v1","resource":"pods"},"operation":"CREATE","object":{"spec":{"containers":[{}` +
		strings.Repeat(",{}", 200_000) + `]}}}}`)
	handler := gmsaCluster().handler()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if w := post(handler, webhook.ValidatePath, body); w.Code >= http.StatusInternalServerError {
		t.Errorf("HTTP %d", w.Code)
	}
	runtime.ReadMemStats(&after)
	if factor := (after.TotalAlloc - before.TotalAlloc) / uint64(len(body)); factor > 100 {
		t.Errorf("each byte of a review cost %d bytes of memory", factor)
	}
}

// A field is named where it is in the object that was sent.
func TestTemplatesAreNamedByTheirOwnFields(t *testing.T) {
	c := gmsaCluster()
	c.gmsa.RequireUser = true
	deployment := `{"kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"serviceAccountName":"web","securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"}}}}}}`
	got := ask(t, c.handler(), webhook.GMSATemplatesPath, sent{resource: "deployments", operation: admissionv1.Create, user: "jane", object: deployment})
	if got.Allowed || !strings.Contains(got.Result.Message, "spec.template.spec.securityContext") {
		t.Errorf("%+v", got.Result)
	}
}
