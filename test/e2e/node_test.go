package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// kubeletPatience is for what the kubelet does when it next looks: it looks once a minute, and waits longer after failures.
const kubeletPatience = 10 * time.Minute

// needNode skips a test where there can be no node, and names what is missing.
func needNode(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program("credence-devcluster"), "check-node", "--dir", t.TempDir()).CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
}

// nodePlane is a plane with a node, and an image busybox:e2e on it.
func nodePlane(t *testing.T, args ...string) plane {
	t.Helper()
	needNode(t)
	port, err := testkit.FreePorts(portsPerPlane)
	must(t, err)
	p := plane{Dir: t.TempDir()}
	t.Cleanup(func() { p.must(t, "", "credence", "down", "--dir", p.Dir) })
	up(t, append([]string{"--dir", p.Dir, "--port", fmt.Sprint(port), "--node"}, args...)...)
	if p, err = readPlane(p.Dir); err != nil {
		t.Fatal(err)
	}
	busybox := need(exec.LookPath("busybox"))(t)
	got := p.must(t, "", "credence-devcluster", "load-image", "--dir", filepath.Join(p.Dir, "devcluster"), "busybox:e2e", busybox)
	if !strings.HasPrefix(got, "docker.io/library/busybox:e2e is an image of the node") {
		t.Errorf("load-image prints %q", got)
	}
	return p
}

// tokenPod prints the item token of a Secret that must be there, again and again until it is ended.
func tokenPod(name, secret string) *corev1.Pod {
	required, grace := false, int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			HostNetwork:                   true,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox:e2e", ImagePullPolicy: corev1.PullNever,
				Command:      []string{"/busybox", "sh", "-c", "while true; do /busybox cat /token/token; /busybox sleep 1; done"},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/token", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: &required,
					Items: []corev1.KeyToPath{{Key: "token", Path: "token"}},
				}}},
			}}}},
		},
	}
}

func (p plane) createPod(t *testing.T, namespace string, pod *corev1.Pod) {
	t.Helper()
	// The service account is made a moment after its namespace.
	eventually(t, func() error {
		_, err := p.client(t).CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			return fatal{err}
		}
		return err
	})
}

// waitForLog waits for a container to have printed text, and reads it as people do.
func (p plane) waitForLog(t *testing.T, namespace, pod, text string) {
	t.Helper()
	eventually(t, func() error {
		stdout, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "logs", pod)
		if !strings.Contains(stdout, text) {
			return fmt.Errorf("logs of %s are %q %s, want %q", pod, stdout, stderr, text)
		}
		return nil
	})
}

// waitEvent waits for an Event of a pod, or of another object, that has all of some texts.
func (p plane) waitEvent(t *testing.T, namespace, object, reason string, texts ...string) {
	t.Helper()
	eventually(t, func() error {
		events, err := p.client(t).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + object})
		if err != nil {
			return err
		}
		var messages []string
		for _, e := range events.Items {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) }) {
				return nil
			}
			messages = append(messages, e.Message)
		}
		return fmt.Errorf("%s has the events %s %q, want %q", object, reason, messages, texts)
	})
}

// waitHeldBack waits until the kubelet has reported why it cannot start a pod, and checks that it has started nothing of it.
func (p plane) waitHeldBack(t *testing.T, namespace, pod, why string) {
	t.Helper()
	p.waitEvent(t, namespace, pod, "FailedMount", why)
	got := need(p.client(t).CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{}))(t)
	if got.Status.Phase != corev1.PodPending {
		t.Errorf("pod %s is %s", pod, got.Status.Phase)
	}
	for _, c := range slices.Concat(got.Status.InitContainerStatuses, got.Status.ContainerStatuses) {
		if c.State.Waiting == nil || c.State.Waiting.Reason != "ContainerCreating" && c.State.Waiting.Reason != "PodInitializing" {
			t.Errorf("container %s of pod %s: %+v", c.Name, pod, c.State)
		}
	}
}

// One plane is enough for all tests of a node; the tests that break it come last.
func TestNode(t *testing.T) {
	needNode(t)
	first(t, ofPlane+ofNode, 5)
	network := machineNetwork(t)
	registry := startRegistry(t)
	registries := registry.writeRegistries(t)
	driver, arguments := driverWithArguments(t)
	p := nodePlane(t, "--image-registries", registries, "--arg", "devcluster=--csi-driver="+driver)
	t.Run("network", func(t *testing.T) { podsHaveANetwork(t, p) })
	t.Run("images of others", func(t *testing.T) { imagesOfOthers(t, p) })
	t.Run("pods wait for their token", func(t *testing.T) { podsWaitForTheirToken(t, p) })
	t.Run("pod of a program", func(t *testing.T) { podOfAProgram(t, p) })
	t.Run("pod presents its identity", func(t *testing.T) { podPresentsItsIdentity(t, p) })
	t.Run("pod is what its profile has", func(t *testing.T) { podIsWhatItsProfileHas(t, p) })
	t.Run("accounts of one user share files", func(t *testing.T) { accountsOfOneUserShareFiles(t, p) })
	t.Run("tokens without secrets", func(t *testing.T) { tokensWithoutSecrets(t, p) })
	t.Run("volume without room", func(t *testing.T) { volumeWithoutRoom(t, p) })
	t.Run("attacks", func(t *testing.T) { attacksOnANode(t, p) })
	t.Run("volumes by the label", func(t *testing.T) { injectedVolumes(t, p) })
	t.Run("volumes by the agent", func(t *testing.T) { volumesByTheAgent(t, p, arguments) })
	t.Run("documents", func(t *testing.T) { documentsOnANode(t, p) })
	t.Run("private images", func(t *testing.T) { privateImages(t, p, registry) })
	t.Run("registries that fail", func(t *testing.T) { failingRegistries(t, p, registry) })
	t.Run("pull secrets", func(t *testing.T) { pullSecrets(t, p, registry, registries) })
	t.Run("attacks without the webhook", func(t *testing.T) {
		withoutWebhook(t, p)
		t.Run("node", func(t *testing.T) { attacksOnANode(t, p) })
		t.Run("tokens of others", func(t *testing.T) { selfTokensOfOthers(t, p) })
		t.Run("tokens of a taken node", func(t *testing.T) { selfTokensOfATakenNode(t, p) })
	})
	t.Run("parts that die", func(t *testing.T) { nodeSurvivesItsParts(t, p) })
	sameNetwork(t, "while pods run", network)
	t.Run("leaves nothing", func(t *testing.T) { nodeLeavesNothing(t, p) })
	sameNetwork(t, "after the node", network)
}

// A pod whose token is not there yet waits for it, whatever the cause, and then has it.
func podsWaitForTheirToken(t *testing.T, p plane) {
	namespace := p.namespace(t)
	secrets := p.client(t).CoreV1().Secrets(namespace)
	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "without-key"}, StringData: map[string]string{"config": "x"}}
	need(secrets.Create(t.Context(), empty, metav1.CreateOptions{}))(t)
	p.createPod(t, namespace, tokenPod("first", "missing"))
	p.createPod(t, namespace, tokenPod("second", "without-key"))
	p.waitHeldBack(t, namespace, "first", `secret "missing" not found`)
	p.waitHeldBack(t, namespace, "second", "references non-existent secret key: token")

	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "missing"}, StringData: map[string]string{"token": "of the first\n"}}
	need(secrets.Create(t.Context(), given, metav1.CreateOptions{}))(t)
	p.waitForLog(t, namespace, "first", "of the first\n")
	p.must(t, "", "kubectl", "-n", namespace, "patch", "secret", "without-key", "-p", `{"stringData":{"token":"of the second\n"}}`)
	p.waitForLog(t, namespace, "second", "of the second\n")
	// A renewed token arrives in the running pod.
	p.must(t, "", "kubectl", "-n", namespace, "patch", "secret", "missing", "-p", `{"stringData":{"token":"renewed\n"}}`)
	waitFor(t, kubeletPatience, func() error {
		if got, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "exec", "first", "--", "/busybox", "cat", "/token/token"); got != "renewed\n" {
			return fmt.Errorf("the token in the pod is %q %s", got, stderr)
		}
		return nil
	})
}

// Documents have blocks that need a node.
func documentsOnANode(t *testing.T, p plane) {
	if documents.Run(t, documents.All(t), "```console needs=node", p.reader) == 0 {
		t.Error("no document has a command that needs a node")
	}
}

// A pod can have a program of the build as its image.
func podOfAProgram(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.must(t, "", "credence-devcluster", "load-image", "--dir", filepath.Join(p.Dir, "devcluster"), "credence:e2e", program("credence"))
	pod := tokenPod("credence", "any")
	pod.Spec.Volumes, pod.Spec.RestartPolicy = nil, corev1.RestartPolicyNever
	pod.Spec.Containers[0] = corev1.Container{Name: "main", Image: "credence:e2e", ImagePullPolicy: corev1.PullNever, Args: []string{"version"}}
	p.createPod(t, namespace, pod)
	p.waitForLog(t, namespace, "credence", strings.TrimSpace(p.must(t, "", "credence", "version")))
}

// Nothing of a pod is left when its plane is gone, however it went; and the next start has its pods again.
func nodeLeavesNothing(t *testing.T, p plane) {
	namespace := p.namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "given"}, StringData: map[string]string{"token": "given\n"}}
	need(p.client(t).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}))(t)
	p.createPod(t, namespace, tokenPod("stays", "given"))
	p.waitForLog(t, namespace, "stays", "given\n")

	if left := leftOf(t, p.Dir); len(left) < 3 {
		t.Fatalf("a pod runs, and what it needs was not found: %v", left)
	}
	p.must(t, "", "credence", "down", "--dir", p.Dir)
	nothingLeft(t, p.Dir)

	up(t, "--dir", p.Dir, "--node")
	p.waitRuns(t, namespace, "stays", 1)
	p.killSupervisor(t)
	p.must(t, "", "credence", "down", "--dir", p.Dir)
	nothingLeft(t, p.Dir)

	up(t, "--dir", p.Dir, "--node")
	p.waitRuns(t, namespace, "stays", 2)
	p.killSupervisor(t)
	// Without --node, too, what is left of the one before is ended.
	up(t, "--dir", p.Dir)
	if left := leftOf(t, p.Dir); slices.ContainsFunc(left, func(what string) bool {
		return strings.Contains(what, "containerd") || strings.Contains(what, "cgroup")
	}) {
		t.Errorf("after kill -9 and up there is still: %v", left)
	}
}

// nothingLeft waits until nothing of the node in dir is left: the kernel takes a moment to end programs whose parent was killed.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, func() error {
		if left := leftOf(t, dir); len(left) != 0 {
			return fmt.Errorf("there is still: %v", left)
		}
		return nil
	})
}

// A part of the node that dies is started again, without its pods.
func nodeSurvivesItsParts(t *testing.T, p plane) {
	namespace := p.namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "given"}, StringData: map[string]string{"token": "given\n"}}
	need(p.client(t).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}))(t)
	p.createPod(t, namespace, tokenPod("stays", "given"))
	p.waitForLog(t, namespace, "stays", "given\n")
	for _, name := range []string{"kubelet", "containerd", "kube-scheduler", "kube-proxy", "coredns", "credence-node"} {
		before := p.part(t, name)
		must(t, syscall.Kill(before.PID, syscall.SIGKILL))
		eventually(t, func() error {
			if now := p.part(t, name); !now.Healthy || now.PID == before.PID {
				return fmt.Errorf("%s: %+v", name, now)
			}
			return nil
		})
	}
	p.createPod(t, namespace, tokenPod("later", "given"))
	p.waitForLog(t, namespace, "later", "given\n")
	p.waitRuns(t, namespace, "stays", 0)

	// With the cluster the node dies, and its pods; all of it comes back.
	before := p.part(t, "kubelet")
	must(t, syscall.Kill(p.part(t, "devcluster").PID, syscall.SIGKILL))
	waitFor(t, kubeletPatience, func() error {
		if now, node := p.part(t, "kubelet"), p.part(t, "node"); !now.Healthy || !node.Healthy || now.PID == before.PID {
			return fmt.Errorf("after the cluster died: %+v, %+v", now, node)
		}
		return nil
	})
	p.waitRuns(t, namespace, "stays", 1)
}

// waitRuns waits until the container of a pod runs, and was not started again; or was, as often as restarts at least: the first start may fail
// while the node comes back.
func (p plane) waitRuns(t *testing.T, namespace, pod string, restarts int32) {
	t.Helper()
	waitFor(t, kubeletPatience, func() error {
		got, err := p.client(t).CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.ContainerStatuses {
			if c.State.Running != nil && (c.RestartCount == restarts || restarts > 0 && c.RestartCount > restarts) {
				return nil
			}
		}
		return fmt.Errorf("pod %s does not run with %d restarts: %+v", pod, restarts, got.Status.ContainerStatuses)
	})
}

func (p plane) killSupervisor(t *testing.T) {
	t.Helper()
	content := need(os.ReadFile(filepath.Join(p.Dir, "lock")))(t)
	pid := need(strconv.Atoi(strings.TrimSpace(string(content))))(t)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	api := need(url.Parse(p.APIServer))(t)
	first := need(strconv.Atoi(api.Port()))(t)
	// The kernel takes a moment to end the others with it.
	eventually(t, func() error {
		if !testkit.AllFree(first, portsPerPlane) {
			return fmt.Errorf("ports from %d on are not free yet", first)
		}
		return nil
	})
}

type statusPart struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	PID     int    `json:"pid"`
}

// part is the status of one part, as soon as there is one, and the process of it if it has one: 0 would be the group of the caller to kill(2).
func (p plane) part(t *testing.T, name string) (part statusPart) {
	t.Helper()
	eventually(t, func() error {
		stdout, stderr, _ := p.command(t, "", "credence", "status", "--dir", p.Dir, "-o", "json")
		var report struct {
			Parts []statusPart `json:"parts"`
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			return fmt.Errorf("status: %w %s", err, stderr)
		}
		n := slices.IndexFunc(report.Parts, func(s statusPart) bool { return s.Name == name })
		if n < 0 {
			return fmt.Errorf("status has no part %s: %s", name, stdout)
		}
		if part = report.Parts[n]; part.PID == 0 && name != "node" {
			return fmt.Errorf("part %s has no process: %s", name, stdout)
		}
		return nil
	})
	return part
}

// leftOf lists processes whose arguments name dir, mounts below it, and control groups of its node.
func leftOf(t *testing.T, dir string) []string {
	t.Helper()
	var left []string
	processes := need(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, file := range processes {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), dir) {
			left = append(left, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	mounts := need(os.ReadFile("/proc/self/mountinfo"))(t)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			left = append(left, line)
		}
	}
	sum := sha256.Sum256([]byte(filepath.Join(dir, "devcluster", "node")))
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		groups := need(filepath.Glob(filepath.Join(pattern, "credence-"+hex.EncodeToString(sum[:5]))))(t)
		left = append(left, groups...)
	}
	return left
}

// A user who cannot have a node sees what is missing before anything is started.
func TestRefusalsOfNodes(t *testing.T) {
	inTurn(t)
	bin := programsForOthers(t)
	dir := filepath.Join(bin, "plane")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "credence"), "up", "--node", "--dir", dir)
	cmd.Dir = "/"
	want := "needs Linux"
	if runtime.GOOS == "linux" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
		want = "--node: a node needs root"
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), want) {
		t.Errorf("up --node: %v, %s, want exit code 1 and %q", err, out, want)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a start that was refused has made its folder")
	}
}

// otherUser is one without rights.
const otherUser = 65534

// programsForOthers is a folder with the programs of a plane, which other users can run.
func programsForOthers(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "linux" && os.Geteuid() != 0 {
		t.Skip("acting as another user needs root")
	}
	bin := need(os.MkdirTemp("", "credence-bin-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	must(t, os.Chmod(bin, 0o755))
	for _, name := range []string{"credence", "credence-devcluster", "credence-server", "credence-discovery", "credence-node"} {
		must(t, copyProgram(program(name), filepath.Join(bin, name)))
	}
	return bin
}

// copyProgram links where it can: the programs are large.
func copyProgram(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
