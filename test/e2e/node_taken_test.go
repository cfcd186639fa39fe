package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// tokenText matches a token among other text.
var tokenText = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)

// withoutWebhook takes the webhook away until the test ends: it has stopped, and kube-apiserver does not call it.
func withoutWebhook(t *testing.T, p plane) {
	t.Helper()
	signalWebhook(t, p, syscall.SIGSTOP)
	t.Cleanup(func() { signalWebhook(t, p, syscall.SIGCONT) })
	client, ctx := p.client(t).AdmissionregistrationV1(), context.WithoutCancel(t.Context())
	mutating := need(client.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}))(t)
	validating := need(client.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}))(t)
	t.Cleanup(func() {
		for _, each := range mutating.Items {
			each.ResourceVersion, each.UID = "", ""
			expect(t, errOf(client.MutatingWebhookConfigurations().Create(ctx, &each, metav1.CreateOptions{})))
		}
		for _, each := range validating.Items {
			each.ResourceVersion, each.UID = "", ""
			expect(t, errOf(client.ValidatingWebhookConfigurations().Create(ctx, &each, metav1.CreateOptions{})))
		}
	})
	must(t, errors.Join(
		client.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		client.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	))
}

// An attacker who is root of a node has the kubelet's certificate, and the files of its pods. With either there are tokens of that node's pods, of the
// identities that these may use, and no others. Nor has a user who makes pods there, whatever the volume of a pod states.
func attacksOnANode(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.awsIdentity(t, namespace, "mine", "mine")
	p.awsIdentity(t, namespace, "theirs", "theirs")
	p.userOf(t, namespace, "web", "mine")
	p.userOf(t, namespace, "store", "theirs")
	pod := identityPod("mine", "mine", 1000, nil)
	pod.Spec.AutomountServiceAccountToken = nil // its own token is in a file, too
	p.createPod(t, namespace, pod)
	p.waitForLog(t, namespace, "mine", "eyJ")
	mine := need(p.client(t).CoreV1().Pods(namespace).Get(t.Context(), "mine", metav1.GetOptions{}))(t)
	theirs := p.podOn(t, namespace, "theirs", "store", p.nodeObject(t).Name)
	wantToken(t, p.bearer(t, p.podToken(t, theirs)), namespace, "theirs", `{}`)

	t.Log("with the certificate of the kubelet")
	stolen := need(clientcmd.BuildConfigFromFlags("", filepath.Join(p.Dir, "devcluster", "node", "kubelet.kubeconfig")))(t)
	kubelet := need(kubernetes.NewForConfig(stolen))(t)
	request := func(pod *corev1.Pod, bound bool) (string, error) {
		body := &authenticationv1.TokenRequest{}
		if bound {
			body.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		}
		got, err := kubelet.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, body, metav1.CreateOptions{})
		return got.Status.Token, err
	}
	own, err := request(mine, true)
	must(t, err, "a token of the node's pod")
	for _, attack := range []struct {
		what string
		try  func() error
	}{
		{"a token of another node's pod", func() error { return errOf(request(theirs, true)) }},
		{"a token of another node's account, of no pod", func() error { return errOf(request(theirs, false)) }},
		{"a token of the own account, of no pod", func() error { return errOf(request(mine, false)) }},
		{"the Secrets of the namespace", func() error {
			return errOf(kubelet.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}))
		}},
	} {
		if err := attack.try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", attack.what, err)
		}
	}
	for _, subresource := range []string{"token", "selftoken"} {
		expect(t, do(t, stolen, "POST", identitiesPath(namespace)+"/mine/"+subresource, "application/json", tokenRequest(`{}`)).is(http.StatusForbidden), "as the node itself,", subresource)
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
		expect(t, selfToken(t, by, namespace, "theirs", `{}`).is(http.StatusForbidden, "grant it the verb use"), "the identity of another node's pod")
	}
	// The pod's token in its file, and the one of above; that of the identity in memory.
	if len(found) != 2 || found[p.Issuer] != 1 {
		t.Errorf("tokens by their issuers: %v", found)
	}

	t.Log("with pods")
	forged := jsonOf(t, map[string]any{"": map[string]any{"token": p.podToken(t, theirs), "expirationTimestamp": time.Now().Add(time.Hour)}})
	elsewhere := p.namespace(t)
	p.awsIdentity(t, elsewhere, "theirs", "theirs")
	notForPod := "no token of workload identity " + namespace + "/theirs for pod " + namespace + "/"
	toRemove := []string{"mine", "theirs"}
	for name, attack := range map[string]struct {
		attributes map[string]string
		why        string
	}{
		"no-right":         {nil, notForPod + "no-right: "},
		"other-pod":        {map[string]string{"pod.name": theirs.Name, "pod.uid": string(theirs.UID), "serviceAccount.name": "store"}, notForPod + "other-pod: "},
		"other-token":      {map[string]string{"serviceAccount.tokens": string(forged)}, notForPod + "other-token: "},
		"other-namespace":  {map[string]string{"pod.namespace": elsewhere}, notForPod + "other-namespace: "},
		"not-ephemeral":    {map[string]string{"ephemeral": "false"}, notForPod + "not-ephemeral: "},
		"foreign-identity": {map[string]string{v1alpha1.VolumeAttributeIdentity: elsewhere + "/theirs"}, "is not a valid name of a WorkloadIdentity"},
	} {
		pod := identityPod(name, "theirs", 1000, nil)
		for attribute, value := range attack.attributes {
			if attribute != v1alpha1.VolumeAttributeIdentity {
				attribute = "csi.storage.k8s.io/" + attribute
			}
			pod.Spec.Volumes[0].CSI.VolumeAttributes[attribute] = value
		}
		p.createPod(t, namespace, pod)
		toRemove = append(toRemove, name)
		p.waitHeldBack(t, namespace, name, attack.why)
	}
	pods := p.client(t).CoreV1().Pods(namespace)
	now := int64(0)
	for _, name := range toRemove {
		expect(t, pods.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	}
}

// tokensOf are all tokens in files that the kubelet has of a pod, its volumes among them.
func (p plane) tokensOf(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	out, err := p.inMounts(t, "grep", "-rhsa", "eyJ", filepath.Join(p.kubeletDir(), "pods", string(pod.UID))).Output()
	must(t, err, "look for tokens")
	tokens := tokenText.FindAllString(string(out), -1)
	slices.Sort(tokens)
	return slices.Compact(tokens)
}
