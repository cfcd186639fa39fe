package e2e_test

import (
	"errors"
	"fmt"
	"slices"
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

// deliver sets how tokens come to the pods of a namespace.
func (p plane) deliver(t *testing.T, namespace, delivery string) error {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelNamespaceDelivery, delivery)
	_, err := p.client(t).CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// identityVolume is the volume of a pod with one identity.
func identityVolume(pod *corev1.Pod) corev1.VolumeSource {
	for _, v := range pod.Spec.Volumes {
		if strings.HasPrefix(v.Name, "workload-identity-") {
			return v.VolumeSource
		}
	}
	return corev1.VolumeSource{}
}

// The label of a namespace decides between Secrets and volumes that are not stored. All else of its pods is the same, and a pod moves by a restart.
func TestDeliveryOfANamespace(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	shared.awsIdentity(t, namespace, "cherry", "cherry")
	banana, cherry := tokensecret.NameFor("web", "banana"), tokensecret.NameFor("web", "cherry")
	pods, secrets, accounts := shared.client(t).CoreV1().Pods(namespace), shared.client(t).CoreV1().Secrets(namespace), shared.client(t).CoreV1().ServiceAccounts(namespace)
	stored, _ := shared.podWithToken(t, namespace, "banana")

	for _, value := range []string{"vault", "CSI", ""} {
		refused(t, "the value "+value, shared.deliver(t, namespace, value), "has the value secret or csi")
	}
	if err := shared.deliver(t, namespace, v1alpha1.DeliveryCSI); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the API server learns of labels by a watch
		pod, err := pods.Create(t.Context(), podOf("web"), dryRun)
		if err == nil && identityVolume(pod).CSI == nil {
			err = errors.New("the pod has a Secret")
		}
		return err
	})
	volume, err := pods.Create(t.Context(), podOf("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.CSIVolumeSource{Driver: v1alpha1.CSIDriver, ReadOnly: ptr.To(true), VolumeAttributes: map[string]string{v1alpha1.VolumeAttributeIdentity: "banana"}}
	if got := identityVolume(volume).CSI; got == nil || got.String() != want.String() {
		t.Errorf("the volume is %v, want %v", got, want)
	}
	if len(volume.Spec.SchedulingGates) > 0 {
		t.Errorf("it waits for %v, which the agent does not take off", volume.Spec.SchedulingGates)
	}
	forged := podOf("web")
	forged.Spec.Volumes = []corev1.Volume{{Name: "mine", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: banana}}}}}}}}
	_, err = pods.Create(t.Context(), forged, metav1.CreateOptions{})
	refused(t, "a new pod with a Secret", err, "new pods have no Secrets")
	has := func(c corev1.Container) string {
		mounts := slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return !strings.HasPrefix(m.Name, "workload-identity-") })
		return fmt.Sprint(c.Env, mounts)
	}
	if before, after := has(stored.Spec.Containers[0]), has(volume.Spec.Containers[0]); before != after {
		t.Errorf("with a Secret the container has %s, without %s", before, after)
	}

	// The Secret stays for the pod that mounts it.
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), banana, metav1.GetOptions{})
		if err == nil && secret.Annotations[v1alpha1.AnnotationReleased] == "" {
			err = errors.New("the Secret is not marked")
		}
		return err
	})
	for command, words := range map[string][]string{
		"explain pod " + volume.Name: {": admitted\n", "of csi.identity.credence.dev: the token is not stored", "/var/run/secrets/workload-identity/banana/token", "AWS_ROLE_ARN"},
		"explain pod " + stored.Name: {"secret    " + banana, "drift "},
		"drift":                      {stored.Name, "stale"},
	} {
		out, _, _ := shared.command(t, "", "kubectl", append([]string{"credence"}, strings.Fields(command+" -n "+namespace)...)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s: want %q in\n%s", command, word, out)
			}
		}
	}
	if out := shared.must(t, "", "kubectl", "credence", "get", "-n", namespace); strings.Contains(out, "no Secret") {
		t.Errorf("credence get misses a Secret:\n%s", out)
	}

	// An account that names another identity has no Secret for that.
	renamed := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"cherry",%q:%q}}}`, v1alpha1.AnnotationAccountIdentities, v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken)
	if _, err := accounts.Patch(t.Context(), "web", types.MergePatchType, renamed, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the agent has looked at the account
		account, err := accounts.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && account.Annotations[v1alpha1.AnnotationOperation] != "" {
			err = errors.New("the annotation is still there")
		}
		return err
	})
	if _, err := secrets.Get(t.Context(), cherry, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the new identity has a Secret: %v", err)
	}
	// Without the right to use the identity there is no pod.
	shared.awsIdentity(t, namespace, "damson", "damson")
	without := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "other", Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: "damson"}}}
	if _, err := accounts.Create(t.Context(), without, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = pods.Create(t.Context(), podOf("other"), metav1.CreateOptions{})
	refused(t, "a pod of an account without the right", err, `may not use workload identity "damson"`)

	// Once its pods are gone, so is the Secret. Back to Secrets, there are new ones.
	if err := pods.Delete(t.Context(), stored.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // a minute after it was marked
		if _, err := secrets.Get(t.Context(), banana, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is still there: %v", err)
		}
		return nil
	})
	if err := shared.deliver(t, namespace, v1alpha1.DeliverySecret); err != nil {
		t.Fatal(err)
	}
	back, _ := shared.podWithToken(t, namespace, "cherry")
	if source := identityVolume(back); source.Projected == nil || len(back.Spec.SchedulingGates) != 1 {
		t.Errorf("the volume is %v, gates %v", source, back.Spec.SchedulingGates)
	}
}
