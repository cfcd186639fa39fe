package e2e_test

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// tokenText matches a token among other text.
var tokenText = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)

// An attacker who is root of a node has the kubelet's certificate, and the files of its pods. With either there are tokens of that node's pods, of the
// identities that these may use, and no others.
func takenNode(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.awsIdentity(t, namespace, "mine", "mine")
	p.awsIdentity(t, namespace, "theirs", "theirs")
	p.userOf(t, namespace, "web", "mine")
	p.userOf(t, namespace, "store", "theirs")
	pod := identityPod("mine", "mine", 1000, nil)
	pod.Spec.AutomountServiceAccountToken = nil // its own token is in a file, too
	p.createPod(t, namespace, pod)
	p.waitForLog(t, namespace, "mine", "eyJ")
	mine, err := p.client(t).CoreV1().Pods(namespace).Get(t.Context(), "mine", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := p.podOn(t, namespace, "theirs", "store", p.nodeObject(t).Name)
	wantToken(t, p.bearer(t, p.podToken(t, theirs)), namespace, "theirs", `{}`)

	t.Log("with the certificate of the kubelet")
	stolen, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.Dir, "devcluster", "node", "kubelet.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	kubelet, err := kubernetes.NewForConfig(stolen)
	if err != nil {
		t.Fatal(err)
	}
	request := func(pod *corev1.Pod, bound bool) (string, error) {
		body := &authenticationv1.TokenRequest{}
		if bound {
			body.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		}
		got, err := kubelet.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, body, metav1.CreateOptions{})
		return got.Status.Token, err
	}
	own, err := request(mine, true)
	if err != nil {
		t.Fatalf("a token of the node's pod: %v", err)
	}
	for _, attack := range []struct {
		what string
		try  func() error
	}{
		{"a token of another node's pod", func() error { _, err := request(theirs, true); return err }},
		{"a token of another node's account, of no pod", func() error { _, err := request(theirs, false); return err }},
		{"a token of the own account, of no pod", func() error { _, err := request(mine, false); return err }},
		{"the Secrets of the namespace", func() error {
			_, err := kubelet.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		}},
	} {
		if err := attack.try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", attack.what, err)
		}
	}
	for _, subresource := range []string{"token", "selftoken"} {
		if got := do(t, stolen, "POST", identitiesPath(namespace)+"/mine/"+subresource, "application/json", tokenRequest(`{}`)); got.Code != http.StatusForbidden {
			t.Errorf("as the node itself, %s: %d %s", subresource, got.Code, got.Body)
		}
	}

	t.Log("with the files of the kubelet")
	found := map[string]int{}
	for _, token := range append(p.tokensOf(t, mine), own) {
		_, c := claims(t, token)
		kubernetes, _ := c["kubernetes.io"].(map[string]any)
		if got, _ := kubernetes["pod"].(map[string]any); got["uid"] != string(mine.UID) {
			t.Errorf("a token of the pod %v", got)
		}
		issuer, _ := c["iss"].(string)
		found[issuer]++
		if issuer == p.Issuer {
			if sub, _ := c["sub"].(string); !strings.Contains(sub, ":"+namespace+":mine:") {
				t.Errorf("a token of the identity %v", c["sub"])
			}
			continue
		}
		by := p.bearer(t, token)
		wantToken(t, by, namespace, "mine", `{}`)
		if got := selfToken(t, by, namespace, "theirs", `{}`); got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), "grant it the verb use") {
			t.Errorf("the identity of another node's pod: %d %s", got.Code, got.Body)
		}
	}
	// The pod's token in its file, and the one of above; that of the identity in memory.
	if len(found) != 2 || found[p.Issuer] != 1 {
		t.Errorf("tokens by their issuers: %v", found)
	}
	pods := p.client(t).CoreV1().Pods(namespace)
	now := int64(0)
	for _, name := range []string{"mine", "theirs"} {
		if err := pods.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
	}
}

// tokensOf are all tokens in files that the kubelet has of a pod, its volumes among them.
func (p plane) tokensOf(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	out, err := p.inMounts(t, "grep", "-rhsa", "eyJ", filepath.Join(p.kubeletDir(), "pods", string(pod.UID))).Output()
	if err != nil {
		t.Fatalf("look for tokens: %v", err)
	}
	tokens := tokenText.FindAllString(string(out), -1)
	slices.Sort(tokens)
	return slices.Compact(tokens)
}
