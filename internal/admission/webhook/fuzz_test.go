package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
)

// Whatever comes in, there is an HTTP error or a proper answer.
func FuzzReview(f *testing.F) {
	f.Add(sent{resource: "pods", object: podJSON}.body(f))
	f.Add(sent{resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, object: podJSON, old: podJSON}.body(f))
	f.Add(sent{resource: "secrets", object: `{"metadata":{"labels":{"authentication.gardener.cloud/purpose":"workload-identity-token-requestor"}},"data":{"config":"e30="}}`}.body(f))
	f.Add(sent{resource: "deployments", object: `{"kind":"Deployment","spec":{"template":` + podJSON + `}}`}.body(f))
	f.Add(gmsaReview("", windowsPod("webapp1", "")).body(f))
	f.Add(sent{resource: "gmsacredentialspecs", object: `{"credspec":{"CmsPlugins":["ActiveDirectory"]}}`}.body(f))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":null,"oldObject":{}}}`))
	c := gmsaCluster()
	c.gmsa = webhook.GMSA{Annotations: true, RequireUser: true, Hostname: func() string { return "g-1" }}
	handler := c.handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		c.log.Reset()
		for _, path := range []string{webhook.PodsPath, webhook.SecretsPath, webhook.TemplatesPath, webhook.QuotasPath, webhook.MutatePath, webhook.ValidatePath, webhook.CredentialSpecsPath, webhook.GMSATemplatesPath} {
			w := post(handler, path, body)
			if w.Code >= 400 && w.Code < 500 {
				continue
			}
			if w.Code != http.StatusOK {
				t.Fatalf("HTTP %d %s", w.Code, w.Body)
			}
			answered(t, w.Body.Bytes())
		}
	})
}

// The API server sends objects that it has decoded itself: a patch for that always applies, and once only.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(podJSON), "pods")
	f.Add([]byte(`{"metadata":{"labels":{"authentication.gardener.cloud/purpose":"workload-identity-token-requestor","workloadidentity.authentication.gardener.cloud/provider":"aws"},"annotations":{"workloadidentity.authentication.gardener.cloud/name":"n","workloadidentity.authentication.gardener.cloud/namespace":"m"}},"data":{"config":"e30="}}`), "secrets")
	c := newCluster()
	handler := c.handler()
	f.Fuzz(func(t *testing.T, object []byte, resource string) {
		c.log.Reset()
		path := webhook.PodsPath
		if resource == "secrets" {
			path, object = webhook.SecretsPath, canonical[corev1.Secret](t, object)
		} else {
			resource, object = "pods", canonical[corev1.Pod](t, object)
		}
		response := ask(t, handler, path, sent{resource: resource, object: string(object)})
		if !response.Allowed {
			return
		}
		after := applied(t, string(object), response)
		if again := ask(t, handler, path, sent{resource: resource, object: after}); !again.Allowed || again.Patch != nil {
			t.Errorf("on the patched object: %+v", again)
		}
	})
}

// canonical is an object as the API server writes it; in a namespace, as all are.
func canonical[T any](t *testing.T, raw []byte) []byte {
	var object T
	if json.Unmarshal(raw, &object) != nil {
		t.Skip("no object")
	}
	switch o := any(&object).(type) {
	case *corev1.Pod:
		o.Namespace, o.Spec.ServiceAccountName = "orchard", "app"
	case *corev1.Secret:
		o.Namespace = "orchard"
	}
	out, err := json.Marshal(&object)
	if err != nil {
		t.Skip("no JSON form")
	}
	return out
}
