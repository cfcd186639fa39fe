package e2e_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// cacheDuration is for how long a kubelet uses a password again, in these tests.
const cacheDuration = 5 * time.Second

// mostLate is after which time without the right a pod must not have its image any more. It is far more than cacheDuration and the review that is
// remembered, as the machine may be slow.
const mostLate = 3 * time.Minute

// writeRegistries writes the configuration of a node whose pods pull from the registry.
func (r *privateRegistry) writeRegistries(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registries.yaml")
	content := fmt.Sprintf(`cacheDuration: %s
registries:
- {images: %[2]s, audiences: [registry], exchange: token-server}
- {images: %[2]s/exchanged, audiences: [registry], exchange: token-exchange, settings: {endpoint: %[3]s/exchange, audience: %[4]s}}
`, cacheDuration, r.address, r.server, registryService)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// imagePod runs an image as a service account, to its end.
func imagePod(name, account, image string, pull corev1.PullPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: account, AutomountServiceAccountToken: new(bool), RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: pull, Command: []string{"/busybox", "echo", "runs"}}},
		},
	}
}

// pullFailure is why the image of a pod could not be pulled; empty: it runs or has run, or the kubelet has not tried yet.
func (p plane) pullFailure(t *testing.T, namespace, pod string) (failure string, ran bool) {
	t.Helper()
	got := need(p.client(t).CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{}))(t)
	for _, status := range got.Status.ContainerStatuses {
		if status.State.Running != nil || status.State.Terminated != nil {
			return "", true
		}
		if waiting := status.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "ImagePull") {
			return waiting.Reason + ": " + waiting.Message, false
		}
	}
	return "", false
}

// waitNotPulled waits until the kubelet could not pull the image of a pod.
func (p plane) waitNotPulled(t *testing.T, namespace, pod string) {
	t.Helper()
	eventually(t, func() error {
		failure, ran := p.pullFailure(t, namespace, pod)
		if ran {
			return fatal{fmt.Errorf("pod %s runs", pod)}
		}
		// After the first failure the kubelet waits, and has a message without the registry's answer.
		if !strings.Contains(failure, "authoriz") {
			return fmt.Errorf("pod %s: %q, want the registry's refusal", pod, failure)
		}
		return nil
	})
}

// A registry that answers with an error or with a page, or whose token server or exchange does: an Event of the pod names the registry's host and the cause.
// The answer to the node's program is in the kubelet's log.
func failingRegistries(t *testing.T, p plane, r *privateRegistry) {
	namespace := p.namespace(t)
	r.trust(t, p)
	defer r.answers(nil)
	r.letPull(p.create(t, namespace, "puller", "generic", "registry").Status.Sub, "team/app")
	p.userOf(t, namespace, "web", "puller")
	p.must(t, "", "kubectl", "-n", namespace, "annotate", "serviceaccount", "web", v1alpha1.AnnotationImagePullIdentity+"=puller")
	broken, page := brokenAnswer{500, "out of order"}, brokenAnswer{200, "<!DOCTYPE html><html><title>Maintenance</title></html>"}
	registry := func(answer brokenAnswer) string {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	for _, c := range []struct {
		pod, path, image string
		answer           brokenAnswer
		event, log       string
	}{
		{"error-of-tokens", "/token", r.address + "/team/app", broken, "500 Internal Server Error", ""},
		{"page-of-tokens", "/token", r.address + "/team/app", page, "invalid character '<'", ""},
		{"error-of-exchange", "/exchange", r.address + "/exchanged/app", broken, "authoriz", r.server + "/exchange answers 500: out of order"},
		{"page-of-exchange", "/exchange", r.address + "/exchanged/app", page, "authoriz", r.server + "/exchange is not the endpoint that the registry needs: its answer cannot be read"},
		{"error", "", registry(broken) + "/team/app", broken, "500 Internal Server Error", ""},
		{"page", "", registry(page) + "/team/app", page, "unexpected media type text/html", ""},
	} {
		r.answers(map[string]brokenAnswer{c.path: c.answer})
		image := c.image + ":" + c.pod
		p.createPod(t, namespace, imagePod(c.pod, "web", image, corev1.PullAlways))
		p.waitEvent(t, namespace, c.pod, "Failed", `Failed to pull image "`+image+`": `, c.event)
		if _, ran := p.pullFailure(t, namespace, c.pod); ran {
			t.Errorf("pod %s runs", c.pod)
		}
		if c.log == "" {
			continue
		}
		inLog := "credence-image-credentials: image " + c.image + ": get credentials for images of " + r.address + "/exchanged: " + c.log
		eventually(t, func() error {
			if !strings.Contains(p.driverLog(t), inLog) {
				return fmt.Errorf("the kubelet's log has no %q", inLog)
			}
			return nil
		})
	}
}

// A private image is pulled as the identity of a pod's service account, without a pull secret. It is on the node then, and pods of other
// accounts do not run it. After a key was revoked others sign; after the right was taken away it is over within cacheDuration.
func privateImages(t *testing.T, p plane, r *privateRegistry) {
	namespace, clients := p.namespace(t), p.client(t)
	r.trust(t, p)
	r.push(t, "team/app", busyboxImage(t, "private"))
	image := r.address + "/team/app:v1"
	r.letPull(p.create(t, namespace, "puller", "generic", "registry").Status.Sub, "team/app")
	r.letPull(p.create(t, namespace, "stranger", "generic", "registry").Status.Sub, "team/other")

	for name, identity := range map[string]string{"web": "puller", "unallowed": "puller", "stranger": "stranger", "plain": ""} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if identity != "" {
			account.Annotations = map[string]string{v1alpha1.AnnotationImagePullIdentity: identity}
		}
		need(clients.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}))(t)
	}
	for _, name := range []string{"web", "stranger"} {
		p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace})
	}

	p.createPod(t, namespace, imagePod("web", "web", image, corev1.PullIfNotPresent))
	p.waitForLog(t, namespace, "web", "runs")

	// The image is on the node.
	for _, account := range []string{"unallowed", "stranger", "plain"} {
		for _, pull := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullAlways} {
			pod := account + "-" + strings.ToLower(string(pull))
			p.createPod(t, namespace, imagePod(pod, account, image, pull))
			p.waitNotPulled(t, namespace, pod)
		}
	}
	refusal := fmt.Sprintf("no token of workload identity %s/puller: ", namespace)
	eventually(t, func() error {
		if log := p.driverLog(t); !strings.Contains(log, refusal) {
			return fmt.Errorf("the log of the node has no %q", refusal)
		}
		return nil
	})

	// A key is revoked. Passwords that were made before are of no use, and the kubelet gets others.
	passwords := r.passwords()
	header, _ := claims(t, passwords[len(passwords)-1])
	p.must(t, "", "credence", "keys", "revoke", header.KeyID, "--reason", "leaked", "--yes", "--accept-refusals", "--wait", "5m", "--ca-file", p.CAFile)
	p.createPod(t, namespace, imagePod("revoked-key", "web", image, corev1.PullAlways))
	p.waitForLog(t, namespace, "revoked-key", "runs")

	// The right is taken away.
	must(t, clients.RbacV1().RoleBindings(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	began := time.Now()
	for i := 0; ; i++ {
		pod, tooLate := fmt.Sprintf("late-%d", i), time.Since(began) > mostLate
		p.createPod(t, namespace, imagePod(pod, "web", image, corev1.PullAlways))
		refused := false
		eventually(t, func() error {
			failure, ran := p.pullFailure(t, namespace, pod)
			if refused = failure != ""; refused || ran {
				return nil
			}
			return fmt.Errorf("pod %s waits", pod)
		})
		if refused {
			break
		}
		if tooLate {
			t.Fatalf("pod %s, which was created more than %s after the right was taken away, has its image: passwords are kept for %s", pod, mostLate, cacheDuration)
		}
	}
	t.Logf("images were refused %s after the right was taken away", time.Since(began).Round(100*time.Millisecond))

	log := p.driverLog(t)
	for _, password := range r.passwords() {
		if strings.Contains(log, password) || strings.Contains(log, password[strings.LastIndex(password, "."):]) {
			t.Error("a token is in the log of the node")
		}
	}
}
