package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// podWithToken makes a pod of the account web, and returns it once its token is there.
func (p plane) podWithToken(t *testing.T, namespace, identity string) (*corev1.Pod, carried) {
	t.Helper()
	pod, err := p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, claims := p.awaitToken(t, namespace, tokensecret.NameFor("web", identity), nil)
	return pod, claims
}

// staysWhileMounted sees that the Secret of an identity that an account has released is renewed, and goes after its pod.
func (p plane) staysWhileMounted(t *testing.T, namespace, name string, pod *corev1.Pod, before carried) {
	t.Helper()
	secrets := p.client(t).CoreV1().Secrets(namespace)
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && secret.Annotations[v1alpha1.AnnotationReleased] == "" {
			err = errors.New("the Secret is not marked")
		}
		return err
	})
	p.awaitWarning(t, namespace, "ServiceAccount/web IdentityReleased", "1 pod still needs them", "to stop delivery at once")
	p.awaitWarning(t, namespace, "Pod/"+pod.Name+" IdentityReleased", "this pod keeps them")
	if _, err := secrets.Patch(t.Context(), name, types.MergePatchType, annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.awaitToken(t, namespace, name, func(c carried) bool { return c.ID != before.ID })
	if out := p.must(t, "", "kubectl", "credence", "get", "-n", namespace); !strings.Contains(out, "(released)") {
		t.Errorf("credence get shows\n%s", out)
	}
	if err := p.client(t).CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is still there: %v", err)
		}
		return nil
	})
}

func TestAnIdentityTakenOffAnAccount(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	pod, before := shared.podWithToken(t, namespace, "banana")
	eventually(t, func() error { // the binder's doing
		_, err := shared.clientAs(t, webhookUser, agentGroup).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	})
	_, warning, code := shared.command(t, "", "kubectl", "annotate", "serviceaccount", "web", "-n", namespace, v1alpha1.AnnotationAccountIdentities+"-")
	if code != 0 || !strings.Contains(warning, "new pods of service account web get no tokens of banana any more") {
		t.Errorf("exit code %d, the user is not warned: %s", code, warning)
	}
	if !strings.Contains(warning, "Warning: 1 pod of service account web still uses WorkloadIdentity banana\n") {
		t.Errorf("the number of pods is missing: %s", warning)
	}
	shared.staysWhileMounted(t, namespace, tokensecret.NameFor("web", "banana"), pod, before)
}

// Where the label went, pods that run keep their identity, and no new pod gets at it.
func TestANamespaceThatLosesItsLabel(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	pod, before := shared.podWithToken(t, namespace, "banana")
	name := tokensecret.NameFor("web", "banana")
	stdout, warning, code := shared.command(t, "", "kubectl", "label", "namespace", namespace, v1alpha1.LabelNamespaceIdentities+"-")
	if words := "new pods in the namespace " + namespace + " get no tokens"; code != 0 || !strings.Contains(warning, words) || !strings.Contains(warning, "to stop delivery at once") {
		t.Errorf("exit code %d, want a warning with %q: %s%s", code, words, stdout, warning)
	}
	pods := shared.client(t).CoreV1().Pods(namespace)
	create := func(change func(*corev1.PodSpec)) error {
		pod := podOf("default")
		change(&pod.Spec)
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	reference := corev1.LocalObjectReference{Name: name}
	variable := corev1.EnvVar{Name: "T", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: "token"}}}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	stolen := map[string]func(*corev1.PodSpec){
		"a volume": volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}),
		"a projected volume": volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: reference}}}}}),
		"a driver":   volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "x.example.com", NodePublishSecretRef: &reference}}),
		"CephFS":     volume(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"m"}, SecretRef: &reference}}),
		"a variable": func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{variable} },
		"variables": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}}}
		},
		"an init one": func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "i", Env: []corev1.EnvVar{variable}}}
		},
		"images": func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{reference} },
	}
	eventually(t, func() error {
		if err := create(stolen["a volume"]); err == nil {
			return errors.New("the policy does not apply yet")
		}
		return nil
	})
	for what, steal := range stolen {
		refused(t, "a pod that names the Secret by "+what, create(steal), "credence-token-")
	}
	allowed(t, "another pod", create(volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "another"}})))
	for what, env := range map[string][]corev1.EnvVar{"": nil, "credence-token-": {variable}} {
		debugged := pod.DeepCopy()
		debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "d", Env: env, TerminationMessagePolicy: "File", ImagePullPolicy: "Always"}}}
		debugged.ResourceVersion = ""
		_, err := pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugged, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if what == "" {
			allowed(t, "an ephemeral container of a pod that has the Secret", err)
		} else {
			refused(t, "an ephemeral container that names the Secret", err, what)
		}
	}
	shared.staysWhileMounted(t, namespace, name, pod, before)
}
