package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/test/testkit"
)

// killedPods is how many pods there are while the parts of a node are killed. CREDENCE_KILLED_PODS sets another number, of which ended
// containers and sandboxes are waited for, too: kubelets remove what is left of them once a minute. make test-long has 100.
func killedPods(t *testing.T) (n int, soak bool) {
	t.Helper()
	set := os.Getenv("CREDENCE_KILLED_PODS")
	if set == "" {
		return 12, false
	}
	n, err := strconv.Atoi(set)
	if err != nil || n < 4 || n > 100 {
		t.Fatalf("CREDENCE_KILLED_PODS is %q, want 4 to 100: a node has at most 110 pods", set)
	}
	return n, true
}

// killed are pods of one namespace on a node whose parts are killed.
type killed struct {
	plane
	namespace string
	n         int
	runtime   cri.RuntimeServiceClient // past the guard
}

// The driver and the guard are killed in each step of many pods: while volumes are published, published again and taken away; and while sandboxes and
// containers are created, stopped and removed. Each pod runs with its own token, no container that ran is lost, and nothing is left.
func podsOutliveKills(t *testing.T, p plane) {
	connection := need(grpc.NewClient("unix://"+filepath.Join(p.Dir, "devcluster", "node", "containerd.sock"), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer func() { _ = connection.Close() }()
	n, soak := killedPods(t)
	k := killed{plane: p, namespace: p.namespace(t), n: n, runtime: cri.NewRuntimeServiceClient(connection)}
	p.awsIdentity(t, k.namespace, "banana", "banana")
	need(p.client(t).CoreV1().ServiceAccounts(k.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}))(t)
	p.bind(t, k.namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: k.namespace})

	began := time.Now()
	for i := range k.n {
		pod := identityPod(fmt.Sprintf("pod-%03d", i), "banana", 1000, nil)
		pod.Spec.Containers[0].Command = []string{"/busybox", "sh", "-c", "/busybox cat /id/token && echo && exec /busybox sleep 36000"}
		p.createPod(t, k.namespace, pod)
	}
	k.killAmid(t, "volumes are published", "credence-node", k.volumes, 0, k.n)
	k.killAmid(t, "sandboxes are created", "guard", k.sandboxes, 0, k.n)
	k.killAmid(t, "containers are created", "guard", k.containers, 0, k.n)
	var first map[string]string
	waitFor(t, kubeletPatience, func() (err error) { first, err = k.running(t); return err })
	for pod := range first {
		if !strings.HasPrefix(k.printed(t, pod), "eyJ") {
			t.Errorf("pod %s began without a token", pod)
		}
	}
	k.haveTokens(t)
	t.Logf("%d pods run %s after the first was made", k.n, time.Since(began).Round(time.Second))

	began = time.Now()
	p.damageTokens(t, k.namespace)
	k.kill(t, "credence-node")
	k.killAmid(t, "volumes are published again", "credence-node", k.tokens, 0, k.n)
	k.haveTokens(t)
	t.Logf("all tokens are renewed after %s", time.Since(began).Round(time.Second))
	again, err := k.running(t)
	expect(t, err)
	for pod, container := range first {
		if again[pod] != container {
			t.Errorf("pod %s has container %s, and had %s", pod, again[pod], container)
		}
	}

	began = time.Now()
	must(t, p.client(t).CoreV1().Pods(k.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	k.killAmid(t, "containers are stopped", "guard", k.runningContainers, k.n, 0)
	k.killAmid(t, "volumes are taken away", "credence-node", k.volumes, k.n, 0)
	k.killAmid(t, "containers are removed", "guard", k.containers, k.n, 0)
	if soak {
		k.killAmid(t, "sandboxes are removed", "guard", k.sandboxes, k.n, 0)
	}
	waitFor(t, kubeletPatience, func() error {
		left, err := p.client(t).CoreV1().Pods(k.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			return errors.Join(err, fmt.Errorf("%d pods are left", len(left.Items)))
		}
		containers, sandboxes := k.runningContainers, k.readySandboxes
		if soak {
			containers, sandboxes = k.containers, k.sandboxes
		}
		for what, count := range map[string]func(*testing.T) int{"containers": containers, "sandboxes": sandboxes, "volumes": k.volumes} {
			if n := count(t); n > 0 {
				return fmt.Errorf("%d %s are left", n, what)
			}
		}
		return nil
	})
	mounts, err := p.inMounts(t, "cat", "/proc/self/mountinfo").Output()
	if err != nil || strings.Contains(string(mounts), "kubernetes.io~csi") {
		t.Errorf("volumes are still mounted: %v", err)
	}
	t.Logf("nothing is left %s after the deletion", time.Since(began).Round(time.Second))
}

// killAmid kills a part of the node when a count has gone a third of its way.
func (k killed) killAmid(t *testing.T, step, part string, count func(*testing.T) int, from, to int) {
	t.Helper()
	at := 0
	testkit.Eventually(t, step, func() bool {
		at = count(t)
		return 3*(at-from)*(to-from) >= (to-from)*(to-from)
	})
	k.kill(t, part)
	t.Logf("%s: %s was killed at %d, from %d to %d", step, part, at, from, to)
}

// kill kills a part of the node, and waits for the next one.
func (k killed) kill(t *testing.T, name string) {
	t.Helper()
	before := k.part(t, name)
	must(t, syscall.Kill(before.PID, syscall.SIGKILL))
	eventually(t, func() error {
		if now := k.part(t, name); !now.Healthy || now.PID == before.PID {
			return fmt.Errorf("%s: %+v", name, now)
		}
		return nil
	})
}

func (k killed) labels() map[string]string {
	return map[string]string{"io.kubernetes.pod.namespace": k.namespace}
}

func (k killed) sandboxes(t *testing.T) int { return k.listSandboxes(t, &cri.PodSandboxFilter{}) }

func (k killed) readySandboxes(t *testing.T) int {
	return k.listSandboxes(t, &cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}})
}

func (k killed) listSandboxes(t *testing.T, filter *cri.PodSandboxFilter) int {
	t.Helper()
	filter.LabelSelector = k.labels()
	listed := need(k.runtime.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: filter}))(t)
	return len(listed.GetItems())
}

func (k killed) listContainers(t *testing.T, filter *cri.ContainerFilter) int {
	t.Helper()
	filter.LabelSelector = k.labels()
	listed := need(k.runtime.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: filter}))(t)
	return len(listed.GetContainers())
}

func (k killed) containers(t *testing.T) int { return k.listContainers(t, &cri.ContainerFilter{}) }

func (k killed) runningContainers(t *testing.T) int {
	return k.listContainers(t, &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}})
}

// volumes counts the folders that are volumes of pods.
func (k killed) volumes(t *testing.T) int {
	t.Helper()
	found := need(filepath.Glob(filepath.Join(k.kubeletDir(), "pods", "*", "volumes", "kubernetes.io~csi", "identity", "mount")))(t)
	return len(found)
}

// tokensOf are the tokens in all volumes, by the pod that each one names.
func (k killed) tokensOf(t *testing.T) (byPod map[string]string) {
	t.Helper()
	script := `for token in "$1"/pods/*/volumes/kubernetes.io~csi/*/mount/token; do cat "$token"; echo; done`
	out, err := k.inMounts(t, "sh", "-c", script, "sh", k.kubeletDir()).Output()
	if err != nil {
		return nil // a volume went, or was written, meanwhile
	}
	byPod = map[string]string{}
	for token := range strings.FieldsSeq(string(out)) {
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			continue
		}
		content := need(base64.RawURLEncoding.DecodeString(parts[1]))(t)
		var claims struct {
			Kubernetes struct {
				Pod struct{ Name string }
			} `json:"kubernetes.io"`
		}
		must(t, json.Unmarshal(content, &claims))
		byPod[claims.Kubernetes.Pod.Name] = token
	}
	return byPod
}

func (k killed) tokens(t *testing.T) int { return len(k.tokensOf(t)) }

// haveTokens waits until each pod has a token that names it, and verifies one of them.
func (k killed) haveTokens(t *testing.T) {
	t.Helper()
	waitFor(t, kubeletPatience, func() error {
		if has := k.tokens(t); has != k.n {
			return fmt.Errorf("%d of %d pods have a token", has, k.n)
		}
		return nil
	})
	k.must(t, k.tokensOf(t)["pod-001"], "credence", "token", "verify", "-", "--issuer", k.Issuer, "--ca-file", k.CAFile)
}

// running are the containers that run, by their pod, or an error if one does not.
func (k killed) running(t *testing.T) (map[string]string, error) {
	t.Helper()
	pods, err := k.client(t).CoreV1().Pods(k.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	containers := map[string]string{}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				containers[pod.Name] = c.ContainerID
			}
		}
	}
	if has := k.runningContainers(t); len(containers) != k.n || has != k.n {
		return nil, fmt.Errorf("of %d pods %d run by their status, and %d by the runtime", k.n, len(containers), has)
	}
	return containers, nil
}

// printed is what the containers of a pod have printed.
func (k killed) printed(t *testing.T, pod string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(k.Dir, "devcluster", "node", "pod-logs", k.namespace+"_"+pod+"_*", "main", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs of pod %s: %v, %v", pod, logs, err)
	}
	content := need(os.ReadFile(logs[len(logs)-1]))(t)
	fields := strings.SplitN(string(content), " ", 4) // time, stream, tag, text
	return fields[len(fields)-1]
}
