package e2e_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// A pod whose service account names an identity: it starts only once its token is there, prints the token's claims, and
// exchanges it: the real kubectl, with nothing but what was put into the pod, is known to another cluster.
func podPresentsItsIdentity(t *testing.T, p plane) {
	other := p.secondCluster(t)
	for image, binary := range map[string]string{"kubectl:e2e": program("kubectl"), "credence:e2e": program("credence")} {
		p.must(t, "", "credence-devcluster", "load-image", "--dir", filepath.Join(p.Dir, "devcluster"), image, binary)
	}
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace})
	authority := base64.StdEncoding.EncodeToString(other.CAData)
	identity := fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"visitor"},"spec":{"audiences":["second-cluster"],`+
		`"targetSystem":{"type":"kubernetes","providerConfig":{"apiVersion":"kubernetes.authentication.gardener.cloud/v1alpha1","kind":"Config","server":%q,"certificateAuthorityData":%q}}}}`, other.Host, authority)
	must(t, do(t, p.config(t), "POST", identitiesPath(namespace), "application/json", identity).is(201), "create identity")
	eventually(t, func() error {
		return errOf(p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: "visitor"}}}, metav1.CreateOptions{}))
	})
	pods := p.client(t).CoreV1().Pods(namespace)
	const place = "/var/run/secrets/workload-identity/visitor"
	pod := podOf("web")
	pod.GenerateName, pod.Name = "", "visitor"
	pod.Spec.HostNetwork, pod.Spec.RestartPolicy = true, corev1.RestartPolicyOnFailure // the other cluster may not have read the issuer's documents yet
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "claims", Image: "credence:e2e", ImagePullPolicy: corev1.PullNever, Args: []string{"token", "inspect", place + "/token"},
	}}
	pod.Spec.Containers[0] = corev1.Container{
		Name: "whoami", Image: "kubectl:e2e", ImagePullPolicy: corev1.PullNever, Args: []string{"auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"},
		// The webhook does not see what this sets: its own variable wins.
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"KUBECONFIG": "/nowhere"}}
	need(p.client(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), settings, metav1.CreateOptions{}))(t)
	p.createPod(t, namespace, pod)
	// The agent may not mint here yet, and a user removes the gate: the kubelet starts nothing all the same.
	secret := tokensecret.NameFor("web", "visitor")
	need(pods.Patch(t.Context(), "visitor", types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{}))(t)
	p.waitHeldBack(t, namespace, "visitor", fmt.Sprintf("secret %q not found", secret))
	p.letAgent(t, namespace)
	waitFor(t, kubeletPatience, func() error {
		got, err := pods.Get(t.Context(), "visitor", metav1.GetOptions{})
		if err == nil && got.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("the pod is %s: %+v; %q", got.Status.Phase, got.Status.ContainerStatuses, p.warnings(t, namespace))
		}
		return err
	})
	_, claims := p.awaitToken(t, namespace, secret, nil)
	printed := p.must(t, "", "kubectl", "-n", namespace, "logs", "visitor", "-c", "claims")
	expect(t, lacks(printed, claims.Subject, claims.ID, `"name": "web"`), "the pod")
	if got := p.must(t, "", "kubectl", "-n", namespace, "logs", "visitor", "-c", "whoami"); got != "workload:"+claims.Subject {
		t.Errorf("the other cluster knows the pod as %q, want workload:%s", got, claims.Subject)
	}
}
