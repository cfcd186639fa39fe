package e2e_test

import (
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
	if _, err := core.ServiceAccounts(namespace).Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, "cherry"), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := podOf("web")
	pod.Annotations = map[string]string{v1alpha1.AnnotationMountPath: "/identities"}
	pod, err := core.Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
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

// The deletion of a service account without what it owns must not wait for ever.
func TestAnAccountThatLeavesItsSecretsBehind(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	name := tokensecret.NameFor("web", "banana")
	shared.awaitToken(t, namespace, name, nil)
	owner := shared.admin(t, namespace, "owner-"+namespace).CoreV1()
	if err := owner.ServiceAccounts(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if _, err := owner.ServiceAccounts(namespace).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the service account is still there: %v", err)
		}
		return nil
	})
	secret, err := owner.Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(secret.OwnerReferences) != 0 {
		t.Errorf("the Secret is owned by %v", secret.OwnerReferences)
	}
	shared.awaitWarning(t, namespace, "Secret/"+name, "SecretNotOwned")
}
