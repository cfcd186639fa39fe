package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// strippers are webhooks that write pods anew, as ones built on old types do, by the label that chooses them.
var strippers = map[string]func(*corev1.Pod){
	"containers": func(pod *corev1.Pod) { pod.Spec.Containers = bare(pod.Spec.Containers) },
	"sidecars":   func(pod *corev1.Pod) { pod.Spec.InitContainers = bare(pod.Spec.InitContainers) },
	"gates":      func(pod *corev1.Pod) { pod.Spec.SchedulingGates = nil },
	"everything": func(pod *corev1.Pod) {
		pod.Annotations, pod.Spec.SchedulingGates, pod.Spec.Volumes = nil, nil, nil
		pod.Spec.Containers, pod.Spec.InitContainers = bare(pod.Spec.Containers), bare(pod.Spec.InitContainers)
	},
	"contents": func(pod *corev1.Pod) { pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpec = nil },
	"debuggers": func(pod *corev1.Pod) {
		for i := range pod.Spec.EphemeralContainers {
			pod.Spec.EphemeralContainers[i].Env, pod.Spec.EphemeralContainers[i].VolumeMounts = nil, nil
		}
	},
}

func bare(containers []corev1.Container) []corev1.Container {
	var all []corev1.Container
	for _, c := range containers {
		all = append(all, corev1.Container{Name: c.Name, Image: c.Image, Command: c.Command, RestartPolicy: c.RestartPolicy})
	}
	return all
}

func strip(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&review), json.Unmarshal(review.Request.Object.Raw, &pod)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if change := strippers[pod.Labels["strip"]]; change != nil {
		change(&pod)
		patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": pod.Spec}, {"op": "add", "path": "/metadata/annotations", "value": pod.Annotations}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Response.Patch, review.Response.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	_ = json.NewEncoder(w).Encode(review)
}

// A webhook that is called after Credence's and removes what that has added leads to a refusal that names it, and never to a pod without
// its identity.
func TestFinishedPodsOfOtherWebhooks(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	p := shared.client(t)
	spec := namespace + "-spec"
	shared.createSpec(t, spec)
	shared.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace},
		rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{spec}, Verbs: []string{"use"}})
	server := httptest.NewTLSServer(http.HandlerFunc(strip))
	defer server.Close()
	shared.mutatingWebhook(t, namespace, server, "pods/*")
	pod := func(webhook string, windows bool) *corev1.Pod {
		pod := podOf("web")
		pod.Labels = map[string]string{"strip": webhook}
		pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", Image: "busybox:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		if windows {
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: gmsaOf(spec, "")}
		}
		return pod
	}
	create := func(pod *corev1.Pod) error {
		return errOf(p.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	eventually(t, func() error { return errors.Join(create(pod("", false)), create(pod("", true))) })
	eventually(t, func() error { // the API server learns of the webhook by a watch
		if err := create(pod("everything", false)); err == nil {
			return errors.New("a pod without its identity was created")
		}
		return nil
	})
	variables, mount := "[AWS_ROLE_ARN]", "volumeMounts[workload-identity-"
	for _, test := range []struct {
		webhook  string
		delivery string
		windows  bool
		lacks    []string
	}{
		{"containers", v1alpha1.DeliverySecret, false, []string{"spec.containers[c].env" + variables, "spec.containers[c]." + mount}},
		{"sidecars", v1alpha1.DeliverySecret, false, []string{"spec.initContainers[sidecar].env" + variables, "spec.initContainers[sidecar]." + mount}},
		{"gates", v1alpha1.DeliverySecret, false, []string{"spec.schedulingGates[" + v1alpha1.GateToken + "]"}},
		{"everything", v1alpha1.DeliverySecret, false, []string{"spec.volumes[workload-identity-", "spec.containers[c].env" + variables}},
		{"containers", v1alpha1.DeliverySecret, true, []string{"spec.containers[c].env" + variables}},
		{"everything", v1alpha1.DeliverySecret, true, []string{"spec.volumes[workload-identity-"}},
		{"contents", v1alpha1.DeliverySecret, true, []string{"was not filled in"}},
		{"containers", v1alpha1.DeliveryCSI, false, []string{"spec.containers[c].env" + variables}},
		{"everything", v1alpha1.DeliveryCSI, false, []string{"spec.volumes[workload-identity-"}},
	} {
		must(t, shared.deliver(t, namespace, test.delivery))
		eventually(t, func() error { // so it does of the label
			err := create(pod(test.webhook, test.windows))
			if err == nil {
				return fmt.Errorf("%+v: admitted", test)
			}
			return nil
		})
		refusedWith(t, fmt.Sprintf("%+v", test), create(pod(test.webhook, test.windows)), 422, test.lacks...)
	}
	must(t, shared.deliver(t, namespace, v1alpha1.DeliverySecret))
	made := need(p.CoreV1().Pods(namespace).Create(t.Context(), pod("", false), metav1.CreateOptions{}))(t)
	debug := func(webhook string) error {
		need(p.CoreV1().Pods(namespace).Patch(t.Context(), made.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"strip":"`+webhook+`"}}}`), metav1.PatchOptions{}))(t)
		return errOf(p.CoreV1().Pods(namespace).Patch(t.Context(), made.Name, types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox:1"}]}}`), metav1.PatchOptions{}, "ephemeralcontainers"))
	}
	refusedWith(t, "an ephemeral container", debug("debuggers"), 422, "spec.ephemeralContainers[debug].env"+variables)
	expect(t, debug(""), "an ephemeral container that keeps all")
}
