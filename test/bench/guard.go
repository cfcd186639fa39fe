package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// guardMilliseconds is what the guard may add to a call, and guardShare to the start of a pod.
	guardMilliseconds, guardShare = 1, 0.02
	// startedPods are started one after the other on a real node, after a first one that does not count.
	startedPods = 15
	// reviewedPods are those of the simulated node that are reviewed, after a first one that does not count.
	reviewedPods = 200
)

// measureGuard shows what the guard adds to calls of a runtime that does nothing, what a review takes, and both beside the start of a pod: it has a sandbox,
// a container that is created and started, and one review.
func (n *node) measureGuard(ctx context.Context, s settings, t *table) error {
	review, err := n.reviews(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkCall$", "github.com/credence-id/credence/internal/node/guard")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run BenchmarkCall: %w\n%s", err, out)
	}
	added := map[string]float64{}
	for _, call := range []struct{ name, what string }{
		{"Version", "a call that reads"}, {"CreateContainer/api", "the creation of a container, of a pod of the API"}, {"CreateContainer/file", "the creation of a container, of a static pod"},
	} {
		alone, err := benchmarkMetrics(string(out), "Call/alone/"+call.name)
		if err != nil {
			return err
		}
		guarded, err := benchmarkMetrics(string(out), "Call/guarded/"+call.name)
		if err != nil {
			return err
		}
		added[call.name] = (guarded["ns/op"] - alone["ns/op"]) / 1e6
		t.add(row{what: "guard: added to " + call.what, unit: "ms", ours: added[call.name], peer: "limit", theirs: guardMilliseconds, target: atMost(1)})
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "credence-devcluster"), "check-node", "--dir", n.folder).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: the start of a pod is not measured: %s", out)
		t.add(row{what: "guard: a review", unit: "ms", ours: review, peer: "limit of a call", theirs: guardMilliseconds})
		return nil
	}
	start, err := podStart(ctx, s)
	if err != nil {
		return err
	}
	calls := 3 * added["CreateContainer/api"] // none of the three takes more
	t.add(row{what: "guard: a review", unit: "ms", ours: review, peer: "a pod's start", theirs: start})
	t.add(row{what: "guard: added to a pod's start, without reviews", unit: "ms", ours: calls, peer: "2 % of it", theirs: guardShare * start, target: atMost(1)})
	t.add(row{what: "guard: added to a pod's start, with its review", unit: "ms", ours: calls + review, peer: "2 % of it", theirs: guardShare * start, target: atMost(1)})
	return nil
}

// reviews has pods of the node reviewed one after the other, as a guard does, by a token of the node, and returns the median in milliseconds.
func (n *node) reviews(ctx context.Context) (float64, error) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: n.world.namespace + "-reviews"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "credence:nodereviews"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: podAccount, Namespace: n.world.namespace}},
	}
	if err := n.world.objects.Create(ctx, binding); err != nil {
		return 0, err
	}
	defer func() { _ = n.world.objects.Delete(context.WithoutCancel(ctx), binding) }()
	if err := until(ctx, "the account may review", time.Minute, time.Second, func(ctx context.Context) (bool, error) {
		err := n.review(ctx, 0)
		return err == nil, err
	}); err != nil {
		return 0, err
	}
	var took []time.Duration
	for i := range reviewedPods {
		begun := time.Now()
		if err := n.review(ctx, i+1); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	return median(took, milliseconds), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (n *node) review(ctx context.Context, i int) error {
	pod := n.pods[i]
	body, err := json.Marshal(map[string]any{"apiVersion": "identity.credence.dev/v1alpha1", "kind": "NodeReview", "spec": map[string]any{
		"namespace": pod.Namespace, "name": pod.Name, "uid": pod.UID, "container": pod.Spec.Containers[0].Name,
	}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.world.cluster+"/apis/identity.credence.dev/v1alpha1/nodereviews", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+n.tokens[0])
	answer, err := send(n.caller, request, http.StatusCreated)
	if err == nil && !bytes.Contains(answer, []byte(`"allowed":true`)) {
		err = fmt.Errorf("pod %s is held: %s", pod.Name, answer)
	}
	return err
}

// podStart is how long a pod of one container takes to run on a real node without a guard, in milliseconds: the median, from the request that makes it
// to the status that it runs.
func podStart(ctx context.Context, s settings) (float64, error) {
	fmt.Fprintln(os.Stderr, "bench: a plane with a node starts")
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	port, err := freePorts(11)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.credence(context.WithoutCancel(ctx), "down", "--dir", dir) }()
	if err := s.credence(ctx, "up", "--dir", dir, "--port", port, "--detach", "--node"); err != nil {
		return 0, err
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return 0, err
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "credence-devcluster"), "load-image", "--dir", filepath.Join(dir, "devcluster"), "busybox:bench", busybox).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("load an image: %w: %s", err, out)
	}
	p, err := readPlane(dir)
	if err != nil {
		return 0, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	objects, err := ctrl.New(config, ctrl.Options{Scheme: scheme.Scheme})
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	for i := range startedPods + 1 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bench-%02d", i)}, Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "busybox:bench", ImagePullPolicy: corev1.PullNever, Command: []string{"/busybox", "sleep", "3600"}}},
		}}
		begun := time.Now()
		if err := until(ctx, "a pod is made", time.Minute, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
			begun = time.Now()
			err := objects.Create(ctx, pod.DeepCopy()) // the service account may be missing at first
			return err == nil, err
		}); err != nil {
			return 0, err
		}
		if err := until(ctx, "a pod runs", 5*time.Minute, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
			err := objects.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod)
			return err == nil && pod.Status.Phase == corev1.PodRunning, err
		}); err != nil {
			return 0, err
		}
		if i > 0 {
			took = append(took, time.Since(begun))
		}
		if err := objects.Delete(ctx, pod, ctrl.GracePeriodSeconds(0)); err != nil {
			return 0, err
		}
	}
	return median(took, milliseconds), nil
}
