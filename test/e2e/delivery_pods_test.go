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

const gcpIdentity = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"cherry"},"spec":{
	"audiences":["//iam.googleapis.com/projects/1234/locations/global/workloadIdentityPools/fruit/providers/fruit"],"targetSystem":{"type":"gcp","providerConfig":{
	"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"fruit-project",
	"workloadIdentityPoolProvider":"projects/1234/locations/global/workloadIdentityPools/fruit/providers/fruit"}}}}`

// Files that decide where a token is sent come from annotations of the pod where they are not those of the Secret: users who may annotate
// pods must not be able to send it elsewhere.
func TestFilesOfAPodStayAsTheyWere(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	if got := do(t, shared.config(t), "POST", identitiesPath(namespace), "application/json", gcpIdentity); got.Code != 201 {
		t.Fatalf("create identity: %d %s", got.Code, got.Body)
	}
	core := shared.client(t).CoreV1()
	must(t, errOf(core.ServiceAccounts(namespace).Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, "cherry"), metav1.PatchOptions{})))
	pod := podOf("web")
	pod.Annotations = map[string]string{v1alpha1.AnnotationMountPath: "/identities"}
	pod, err := core.Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	files := 0
	for annotation := range pod.Annotations {
		if !strings.HasPrefix(annotation, "files.identity.credence.dev/") {
			continue
		}
		files++
		for what, patch := range map[string]string{"another file": string(annotate(annotation, `{"token_url":"https://evil.example"}`)), "no file": `{"metadata":{"annotations":{"` + annotation + `":null}}}`} {
			for _, subresource := range [][]string{nil, {"status"}} {
				_, err := core.Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
				refused(t, fmt.Sprintf("%s, by pods/%s", what, subresource), err, "stay as they were")
			}
		}
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Annotations: map[string]string{annotation: `{"token_url":"https://evil.example"}`}}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
		refused(t, "another file, by pods/binding", core.Pods(namespace).Bind(t.Context(), binding, metav1.CreateOptions{}), "stay as they were")
		err := core.RESTClient().Post().Namespace(namespace).Resource("bindings").Body(binding).Do(t.Context()).Error()
		refused(t, "another file, by bindings", err, "stay as they were")
	}
	if files != 1 {
		t.Errorf("the pod has the annotations %v, want one with a file", pod.Annotations)
	}
	_, err = core.Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, annotate("note", "x"), metav1.PatchOptions{})
	allowed(t, "a note", err)
}

// Whatever the rights of a user, the Secret of an account is the agent's to write. The deletion of an account without what it owns must not wait for ever.
func TestSecretsOfAnAccountAreTheAgents(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	name := tokensecret.NameFor("web", "banana")
	shared.awaitToken(t, namespace, name, nil)
	secrets := shared.client(t).CoreV1().Secrets(namespace)
	patchRefused(t, secrets, name, map[string]string{
		"another token": `{"data":{"token":"YS5iLmM="}}`, "one more file": `{"data":{"more":"eA=="}}`,
		"no label": `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":null}}}`, "no owner": `{"metadata":{"ownerReferences":null}}`,
		"immutability": `{"immutable":true}`,
		"another time": string(annotate(v1alpha1.AnnotationRenewTimestamp, "2099-01-01T00:00:00Z")),
	}, "writes it alone")
	allowed(t, "a note", patch(t, secrets, name, string(annotate("note", "x"))))
	owner := shared.admin(t, namespace, "owner-"+namespace).CoreV1()
	must(t, owner.ServiceAccounts(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}))
	eventually(t, func() error {
		if _, err := owner.ServiceAccounts(namespace).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the service account is still there: %v", err)
		}
		return nil
	})
	secret := need(owner.Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}))(t)
	if len(secret.OwnerReferences) != 0 {
		t.Errorf("the Secret is owned by %v", secret.OwnerReferences)
	}
	shared.awaitWarning(t, namespace, "Secret/"+name, "SecretNotOwned")
}

// podWithToken makes a pod of the account web, and returns it once its token is there.
func (p plane) podWithToken(t *testing.T, namespace, identity string) (*corev1.Pod, carried) {
	t.Helper()
	pod := need(p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t)
	_, claims := p.awaitToken(t, namespace, tokensecret.NameFor("web", identity), nil)
	return pod, claims
}

// Where an identity is taken off an account, or the label off the namespace, the user is warned. Without the label, pods that run keep their identity,
// and no new pod gets at it.
func TestANamespaceThatLosesItsLabel(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	pod, _ := shared.podWithToken(t, namespace, "banana")
	name := tokensecret.NameFor("web", "banana")
	eventually(t, func() error { // the binder's doing
		_, err := shared.clientAs(t, webhookUser, agentGroup).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	})
	warned := func(command []string, words ...string) {
		t.Helper()
		_, warning, code := shared.command(t, "", "kubectl", command...)
		for _, each := range words {
			if code != 0 || !strings.Contains(warning, each) {
				t.Errorf("kubectl %v: exit code %d, want a warning with %q: %s", command, code, each, warning)
			}
		}
	}
	warned([]string{"annotate", "serviceaccount", "web", "-n", namespace, v1alpha1.AnnotationAccountIdentities + "-", "--dry-run=server"},
		"new pods of service account web get no tokens of banana any more", "Warning: 1 pod of service account web still uses WorkloadIdentity banana\n")
	warned([]string{"label", "namespace", namespace, v1alpha1.LabelNamespaceIdentities + "-"}, "new pods in the namespace "+namespace+" get no tokens", "to stop delivery at once")
	pods := shared.client(t).CoreV1().Pods(namespace)
	create := func(change func(*corev1.PodSpec)) error {
		pod := podOf("default")
		change(&pod.Spec)
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	stolen := waysTo(name)
	eventually(t, func() error {
		if err := create(stolen["a volume"]); err == nil {
			return errors.New("the policy does not apply yet")
		}
		return nil
	})
	for what, steal := range stolen {
		refused(t, "a pod that names the Secret by "+what, create(steal), "credence-token-")
	}
	allowed(t, "another pod", create(waysTo("another")["a volume"]))
	debugged := func(steal bool) error {
		containers, changed := podOf("default").Spec, pod.DeepCopy()
		if steal {
			stolen["a variable"](&containers)
		}
		changed.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "d", Image: "d", Env: containers.Containers[0].Env, TerminationMessagePolicy: "File", ImagePullPolicy: "Always"}}}
		changed.ResourceVersion = ""
		_, err := pods.UpdateEphemeralContainers(t.Context(), pod.Name, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	allowed(t, "an ephemeral container of a pod that has the Secret", debugged(false))
	refused(t, "an ephemeral container that names the Secret", debugged(true), "credence-token-")
	eventually(t, func() error { // the agent keeps the Secret for the pod
		if out := shared.must(t, "", "kubectl", "credence", "get", "-n", namespace); !strings.Contains(out, "(released)") {
			return fmt.Errorf("credence get shows\n%s", out)
		}
		return nil
	})
}

// deliver sets how tokens come to the pods of a namespace.
func (p plane) deliver(t *testing.T, namespace, delivery string) error {
	t.Helper()
	return patch(t, p.client(t).CoreV1().Namespaces(), namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelNamespaceDelivery, delivery))
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
	banana := tokensecret.NameFor("web", "banana")
	pods, secrets := shared.client(t).CoreV1().Pods(namespace), shared.client(t).CoreV1().Secrets(namespace)
	stored, _ := shared.podWithToken(t, namespace, "banana")

	for _, value := range []string{"vault", "CSI", ""} {
		refused(t, "the value "+value, shared.deliver(t, namespace, value), "has the value secret or csi")
	}
	must(t, shared.deliver(t, namespace, v1alpha1.DeliveryCSI))
	eventually(t, func() error { // the API server learns of labels by a watch
		pod, err := pods.Create(t.Context(), podOf("web"), dryRun)
		if err == nil && identityVolume(pod).CSI == nil {
			err = errors.New("the pod has a Secret")
		}
		return err
	})
	volume, err := pods.Create(t.Context(), podOf("web"), metav1.CreateOptions{})
	must(t, err)
	want := &corev1.CSIVolumeSource{Driver: v1alpha1.CSIDriver, ReadOnly: ptr.To(true), VolumeAttributes: map[string]string{v1alpha1.VolumeAttributeIdentity: "banana"}}
	if got := identityVolume(volume).CSI; got == nil || got.String() != want.String() {
		t.Errorf("the volume is %v, want %v", got, want)
	}
	if len(volume.Spec.SchedulingGates) > 0 {
		t.Errorf("it waits for %v, which the agent does not take off", volume.Spec.SchedulingGates)
	}
	forged := podOf("web")
	waysTo(banana)["a projected volume"](&forged.Spec)
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
	shared.explained(t, 0, []string{": admitted\n", "of csi.identity.credence.dev: the token is not stored", "/var/run/secrets/workload-identity/banana/token", "AWS_ROLE_ARN"}, "pod", volume.Name, "-n", namespace)
	if out, _, _ := shared.command(t, "", "kubectl", "credence", "drift", "-n", namespace); !strings.Contains(out, stored.Name) || !strings.Contains(out, "stale") {
		t.Errorf("drift shows\n%s", out)
	}
	if out := shared.must(t, "", "kubectl", "credence", "get", "-n", namespace); strings.Contains(out, "no Secret") {
		t.Errorf("credence get misses a Secret:\n%s", out)
	}

	// Once its pods are gone, so is the Secret.
	must(t, pods.Delete(t.Context(), stored.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	eventually(t, func() error { // a minute after it was marked
		if _, err := secrets.Get(t.Context(), banana, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is still there: %v", err)
		}
		return nil
	})
}
