package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

const webPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"serviceAccountName":"web","containers":[{"name":"c","image":"busybox:1"}]}}`

// explained waits until explain gives an exit code, and its text has the words.
func (p plane) explained(t *testing.T, code int, words []string, args ...string) string {
	t.Helper()
	var text string
	eventually(t, func() error {
		stdout, stderr, got := p.command(t, webPod, "credence", append([]string{"explain"}, args...)...)
		text = stdout
		for _, word := range words {
			if got != code || !strings.Contains(stdout, word) {
				return fmt.Errorf("explain %v: exit code %d, want %d with %q:\n%s%s", args, got, code, word, stdout, stderr)
			}
		}
		return nil
	})
	return text
}

// Without the agent's RoleBinding a pod is admitted and never starts.
func TestExplainPodWithoutTheAgentsRight(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	shared.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace})
	shared.awsIdentity(t, namespace, "banana", "banana")
	eventually(t, func() error {
		return errOf(shared.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: "banana"},
		}}, metav1.CreateOptions{}))
	})
	shared.awaitWarning(t, namespace, "IdentityUnreadable", "banana")
	command := "kubectl create rolebinding credence-agent -n " + namespace + " --clusterrole=credence:agent:identities --serviceaccount=credence-system:credence-agent"
	shared.explained(t, 1, []string{"pod " + namespace + "/web: admitted, but it does not start\n", "IdentityUnreadable", command}, "-f", "-", "-n", namespace)

	// So is one that exists, and for a reader who may neither review access nor create pods the Event is what is known.
	pod := need(shared.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t)
	shared.explained(t, 1, []string{": admitted, but it does not start\n", "gate ", command}, "pod/"+pod.Name, "-n", namespace)
	shared.bind(t, namespace, "edit", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "editor"})
	shared.explained(t, 1, []string{": admitted, but it does not start\n", "IdentityUnreadable", "the role credence:agent:identities"}, "-f", "-", "-n", namespace, "--as", "editor")

	// The command mends it.
	shared.must(t, "", "kubectl", strings.Fields(command)[1:]...)
	shared.awaitToken(t, namespace, tokensecret.NameFor("web", "banana"), nil)
	shared.explained(t, 0, []string{": admitted\n", "has a token"}, "pod", pod.Name, "-n", namespace)
}

// A fact that a reader may not look up is found by a dry run of the pod, or stays unknown.
func TestExplainForReadersWithoutAccessReviews(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	shared.awaitToken(t, namespace, tokensecret.NameFor("web", "banana"), nil)
	shared.bind(t, namespace, "view", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "viewer"})
	shared.bind(t, namespace, "edit", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "editor"})
	shared.explained(t, 3, []string{"pod " + namespace + "/web: unknown\n", "you may not create subjectaccessreviews"}, "-f", "-", "-n", namespace, "--as", "viewer")
	text := shared.explained(t, 0, []string{"pod " + namespace + "/web: admitted\n", "use       allowed"}, "-f", "-", "-n", namespace, "--as", "editor")
	if strings.Contains(text, "not known") {
		t.Errorf("the pod was tried out, and yet:\n%s", text)
	}
	if pods, err := shared.client(t).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("explain left %d pods: %v", len(pods.Items), err)
	}

	// The pod of the file may exist, and one that exists can be tried out again.
	shared.must(t, webPod, "kubectl", "create", "-n", namespace, "-f", "-")
	shared.explained(t, 0, []string{": admitted\n"}, "-f", "-", "-n", namespace, "--as", "editor")
	shared.explained(t, 0, []string{": admitted\n", "dry run"}, "po/web", "-n", namespace, "--as", "editor")

	// Another config, or another list, does not make of what was added something of the container's own.
	shared.patchIdentity(t, namespace, "banana", `{"spec":{"targetSystem":{"providerConfig":{"iamRoleARN":"arn:aws:iam::112233445566:role/renamed"}}}}`)
	text = shared.explained(t, 0, []string{": admitted\n", "variable  AWS_ROLE_ARN=arn:aws:iam::112233445566:role/renamed"}, "po/web", "-n", namespace)
	if strings.Contains(text, "kept") {
		t.Errorf("what was added counts as the container's:\n%s", text)
	}
	need(shared.client(t).CoreV1().ServiceAccounts(namespace).Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, ""), metav1.PatchOptions{}))(t)
	shared.explained(t, 0, []string{"gets no identity: its service account lists none"}, "po/web", "-n", namespace)
}

// A pod that another rule of the cluster refuses is shown as refused.
func TestExplainTriesOut(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	shared.awaitToken(t, namespace, tokensecret.NameFor("web", "banana"), nil)
	need(shared.client(t).CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{}))(t)
	shared.explained(t, 1, []string{"pod " + namespace + "/web: refused (403)\n", "exceeded quota: none"}, "-f", "-", "-n", namespace)
}
