package e2e_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// An agent that is kept to namespaces delivers there, to Secrets and service accounts, and can read Secrets nowhere else: the signing keys of its cluster are safe
// from it. And while the webhook does not answer, pods and Secrets that need it are refused, and no others; tokens are renewed.
func TestPlaneBoundsOfDelivery(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	root := p.client(t)
	for _, name := range []string{"inside", "outside"} {
		p.must(t, "", "kubectl", "create", "namespace", name)
		p.awsIdentity(t, name, "banana", "dev")
		p.letAgent(t, name)
	}
	if err := root.RbacV1().ClusterRoleBindings().Delete(t.Context(), "credence:agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"credence:agent", "credence:agent:secrets"} {
		p.bind(t, "inside", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "credence-agent", Namespace: "credence-system"})
	}
	// An agent that is kept to namespaces begins its watches with the rights that it has there.
	p.again(t, "--arg", "agent=--namespaces=inside")
	for _, name := range []string{"outside", "inside"} {
		if _, err := root.CoreV1().Secrets(name).Create(t.Context(), tokenSecret("s", name, "banana"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.awaitToken(t, "inside", "s", nil)
	if secret, err := root.CoreV1().Secrets("outside").Get(t.Context(), "s", metav1.GetOptions{}); err != nil || len(secret.Data["token"]) != 0 {
		t.Errorf("the Secret outside has %d bytes of token, %v", len(secret.Data["token"]), err)
	}
	agent := p.clientAs(t, agentUser, agentGroup)
	for _, namespace := range []string{"outside", "credence-system", ""} {
		if _, err := agent.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets of %q gives %v", namespace, err)
		}
	}

	p.enable(t, "inside")
	p.letUse(t, "inside", "system:serviceaccount:inside:web")
	p.must(t, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"inside","name":"web","annotations":{"`+v1alpha1.AnnotationAccountIdentities+`":"banana"}}}`, "kubectl", "apply", "-f", "-")
	p.awaitToken(t, "inside", tokensecret.NameFor("web", "banana"), nil)

	t.Run("webhook that does not answer", func(t *testing.T) { webhookThatDoesNotAnswer(t, p) })
}

func webhookThatDoesNotAnswer(t *testing.T, p plane) {
	root := p.client(t).CoreV1()
	create := func(namespace string) error {
		_, err := root.Pods(namespace).Create(t.Context(), podOf("default"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func() error { return create("inside") })
	signalWebhook(t, p, syscall.SIGSTOP)
	t.Cleanup(func() { signalWebhook(t, p, syscall.SIGCONT) })
	eventually(t, func() error { // once the API server knows the label of the namespace
		err := create("inside")
		if err == nil {
			return errors.New("a pod that the webhook has not seen was let through")
		}
		refused(t, "a pod that the webhook has not seen", err, "pods.identity.credence.dev")
		return nil
	})
	if err := create("outside"); err != nil {
		t.Errorf("a pod of another namespace: %v", err)
	}
	if _, err := root.Secrets("inside").Create(t.Context(), tokenSecret("s2", "inside", "banana"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "secrets.identity.credence.dev") {
		t.Errorf("a labelled Secret that the webhook has not seen: %v", err)
	}
	p.patchIdentity(t, "inside", "banana", `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`)
	p.awaitToken(t, "inside", "s", func(c carried) bool { return slices.Contains(c.Audience, "second") })
	plain := tokenSecret("plain", "inside", "banana")
	plain.Labels = nil
	if _, err := root.Secrets("inside").Create(t.Context(), plain, metav1.CreateOptions{}); err != nil {
		t.Errorf("a Secret without the label: %v", err)
	}
	signalWebhook(t, p, syscall.SIGCONT)
	eventually(t, func() error { return create("inside") })
}
