package e2e_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Terraform, kubectl replace and Argo CD with Replace=true put a manifest in place of a Secret that is filled.
func TestReplacedSecretKeepsItsToken(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	shared.awsIdentity(t, namespace, "banana", "dev")
	shared.letAgent(t, namespace)
	jane, bob := shared.admin(t, namespace, "jane").CoreV1().Secrets(namespace), shared.admin(t, namespace, "bob").CoreV1().Secrets(namespace)
	shared.letUse(t, namespace, "jane")
	manifest := tokenSecret("s", namespace, "banana")
	eventually(t, func() error { _, err := jane.Create(t.Context(), manifest, metav1.CreateOptions{}); return err })
	first, token := shared.awaitToken(t, namespace, "s", nil)

	same := func(what string) {
		t.Helper()
		now := need(jane.Get(t.Context(), "s", metav1.GetOptions{}))(t)
		user, _ := tokensecret.RequestedBy(now)
		if string(now.Data[v1alpha1.SecretToken]) != string(first.Data[v1alpha1.SecretToken]) || string(now.Data[v1alpha1.SecretConfig]) != string(first.Data[v1alpha1.SecretConfig]) ||
			now.Annotations[v1alpha1.AnnotationInputs] != first.Annotations[v1alpha1.AnnotationInputs] || user.Name != "jane" {
			t.Errorf("%s: the Secret has %d keys, annotations %v, and its token was %v", what, len(now.Data), now.Annotations, token)
		}
	}
	_, err := jane.Update(t.Context(), tokenSecret("s", namespace, "banana"), metav1.UpdateOptions{})
	allowed(t, "a replace by its requester", err)
	same("replaced")
	_, err = jane.Patch(t.Context(), "s", types.JSONPatchType, []byte(`[{"op":"replace","path":"/data","value":{}}]`), metav1.PatchOptions{})
	allowed(t, "a patch that empties it", err)
	same("emptied")

	_, err = bob.Update(t.Context(), tokenSecret("s", namespace, "banana"), metav1.UpdateOptions{})
	refused(t, "a replace by another user", err, "leave data out of what you manage")
	if err != nil && !strings.Contains(err.Error(), "keeps its data if jane makes it") {
		t.Errorf("the refusal does not name the requester: %v", err)
	}
	same("refused")
}
