package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/test/testkit"
)

// typicalReview is a pod as a Deployment's controller makes it, with the additions of the API server: a service account's own volume,
// two containers with probes and resources, and managedFields.
func typicalReview(b *testing.B) []byte {
	b.Helper()
	const container = `{"name":"NAME","image":"registry.example.com/team/service:v1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],
		"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"DB","valueFrom":{"secretKeyRef":{"name":"db","key":"url"}}}],
		"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},
		"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"kube-api-access-x","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
		"livenessProbe":{"httpGet":{"path":"/livez","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
		"readinessProbe":{"httpGet":{"path":"/readyz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
		"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"capabilities":{"drop":["ALL"]},"allowPrivilegeEscalation":false}}`
	pod := `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"service-5d4f8c7b9-","namespace":"orchard","creationTimestamp":null,"labels":{"app":"service","pod-template-hash":"5d4f8c7b9"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"service-5d4f8c7b9","uid":"8a2f6a52-95e5-4b0a-9a25-8b5f2d5b5b5b","controller":true,"blockOwnerDeletion":true}],
		"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"8a2f6a52-95e5-4b0a-9a25-8b5f2d5b5b5b\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{}}}}]},
		"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"kube-api-access-x","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],
		"containers":[` + strings.Replace(container, "NAME", "main", 1) + `,` + strings.Replace(container, "NAME", "proxy", 1) + `],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"app","serviceAccount":"app","securityContext":{"runAsNonRoot":true},"schedulerName":"default-scheduler",
		"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{}}`
	body := testkit.Need(json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": map[string]any{
		"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": map[string]string{"group": "", "version": "v1", "kind": "Pod"}, "resource": map[string]string{"group": "", "version": "v1", "resource": "pods"},
		"requestKind": map[string]string{"group": "", "version": "v1", "kind": "Pod"}, "requestResource": map[string]string{"group": "", "version": "v1", "resource": "pods"},
		"namespace": "orchard", "operation": "CREATE", "dryRun": false, "object": json.RawMessage(pod), "oldObject": nil,
		"userInfo": map[string]any{"username": "system:serviceaccount:kube-system:replicaset-controller", "uid": "5f8a", "groups": []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}},
		"options":  map[string]string{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
	}}))(b)
	return body
}

// BenchmarkPods is one admitted pod with an identity; BenchmarkNothing is a webhook that decodes the same and admits it.
func BenchmarkPods(b *testing.B) {
	measure(b, newCluster().handler(), webhook.PodsPath, typicalReview(b), true)
}

// BenchmarkFinishedPods is the same pod after all mutating webhooks, beside a webhook that does nothing with it; and a pod without identities.
func BenchmarkFinishedPods(b *testing.B) {
	without := newCluster()
	annotate("")(without)
	for name, c := range map[string]*cluster{"identity": newCluster(), "none": without} {
		handler, body := c.handler(), typicalReview(b)
		review := func() *admissionv1.AdmissionResponse {
			return answered(b, post(handler, webhook.PodsPath, body).Body.Bytes())
		}
		var sent struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Request    map[string]any `json:"request"`
		}
		testkit.Must(b, json.Unmarshal(body, &sent))
		pod := testkit.Need(json.Marshal(sent.Request["object"]))(b)
		sent.Request["object"] = json.RawMessage(applied(b, string(pod), review()))
		finished := testkit.Need(json.Marshal(sent))(b)
		b.Run(name, func(b *testing.B) { measure(b, handler, finishedPods, finished, false) })
		b.Run(name+"/nothing", func(b *testing.B) { measure(b, nothing, finishedPods, finished, false) })
	}
}

func BenchmarkNothing(b *testing.B) { measure(b, nothing, webhook.PodsPath, typicalReview(b), false) }

var nothing = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if json.Unmarshal(body, &review) != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	out, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
})

func measure(b *testing.B, handler http.Handler, path string, body []byte, patched bool) {
	first := post(handler, path, body)
	if response := answered(b, first.Body.Bytes()); !response.Allowed || (response.Patch != nil) != patched {
		b.Fatalf("%s", first.Body)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if w := post(handler, path, body); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
