package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Each container of these tests prints what it may do, and stays.
const confinement = `/busybox grep -E '^(Uid|Gid|CapEff|NoNewPrivs|Seccomp):' /proc/self/status | /busybox tr -s '\t ' ' '
/busybox touch /written 2>/dev/null && echo written
/busybox ls /host 2>/dev/null | /busybox grep -x proc
echo end
while true; do /busybox sleep 1; done`

// askingPod wants all that a container can have, without the host's folders. Its annotation is one that the kubelet overwrites.
func askingPod(name string) *corev1.Pod {
	yes, root, grace := true, int64(0), int64(1)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{"kubernetes.io/config.source": "api"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox:e2e", ImagePullPolicy: corev1.PullNever, Command: []string{"/busybox", "sh", "-c", confinement},
				SecurityContext: &corev1.SecurityContext{
					Privileged: &yes, AllowPrivilegeEscalation: &yes, RunAsUser: &root, RunAsGroup: &root,
					Capabilities:   &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/cache"}},
			}},
			Volumes: []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// hostPod is askingPod with the root of the host.
func hostPod(name string) *corev1.Pod {
	pod := askingPod(name)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/host"})
	return pod
}

// runStatic gives the node's kubelet a manifest.
func (p plane) runStatic(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	manifest := need(json.Marshal(pod))(t)
	must(t, os.WriteFile(filepath.Join(p.Dir, "devcluster", "node", "static-pods", pod.Name+".json"), manifest, 0o600))
}

// confined waits for what a container of these tests prints.
func (p plane) confined(t *testing.T, pod string) []string {
	t.Helper()
	p.waitForLog(t, "default", pod, "end\n")
	return strings.Split(strings.TrimSuffix(p.must(t, "", "kubectl", "-n", "default", "logs", pod), "\nend\n"), "\n")
}

// describedBy waits until people who look at a pod find texts there, and checks that no container of it has run.
func (p plane) describedBy(t *testing.T, pod string, texts ...string) {
	t.Helper()
	eventually(t, func() error {
		described, _, _ := p.command(t, "", "kubectl", "-n", "default", "describe", "pod", pod)
		return lacks(described, texts...)
	})
	got := need(p.client(t).CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{}))(t)
	for _, c := range got.Status.ContainerStatuses {
		if c.State.Waiting == nil || c.ContainerID != "" {
			t.Errorf("a container of pod %s has run: %+v", pod, c)
		}
	}
}

// containerOf is the container of a pod that runs, and the digest of its image.
func (p plane) containerOf(t *testing.T, pod string) (id, digest string) {
	t.Helper()
	eventually(t, func() error { // the kubelet reports a moment after a container has begun
		got, err := p.client(t).CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.ContainerStatuses {
			if c.State.Running != nil && c.RestartCount == 0 {
				_, hex, _ := strings.Cut(c.ImageID, "sha256:")
				id, digest = c.ContainerID, "sha256:"+hex
				return nil
			}
		}
		return fmt.Errorf("pod %s does not run as it began: %+v", pod, got.Status.ContainerStatuses)
	})
	return id, digest
}

func (p plane) guardSocket() string { return filepath.Join(p.Dir, "devcluster", "node", "guard.sock") }

// crictl is an admin on the guard's socket.
func (p plane) crictl(t *testing.T) cri.RuntimeServiceClient {
	t.Helper()
	connection := need(grpc.NewClient("unix://"+p.guardSocket(), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { _ = connection.Close() })
	return cri.NewRuntimeServiceClient(connection)
}

// byHand does what an admin does with crictl on the guard's socket: what reads is answered, and what is created in the sandbox of a pod, or beside it, is
// decided on. ctr calls containerd past CRI, and has nothing.
func (p plane) byHand(t *testing.T, pod string) {
	t.Helper()
	crictl, ctx := p.crictl(t), t.Context()
	if version, err := crictl.Version(ctx, &cri.VersionRequest{}); err != nil || version.GetRuntimeName() != "containerd" || !strings.HasSuffix(version.GetRuntimeVersion(), "+credence-guard") {
		t.Errorf("version: %v, %v", version, err)
	}
	listed, err := crictl.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.name": pod}}})
	if err != nil || len(listed.GetContainers()) != 1 {
		t.Fatalf("ps: %v, %v", listed, err)
	}
	container := listed.GetContainers()[0]
	if inspected, err := crictl.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: container.GetId(), Verbose: true}); err != nil || inspected.GetStatus().GetId() != container.GetId() || len(inspected.GetInfo()) == 0 {
		t.Errorf("inspect: %v, %v", inspected, err)
	}
	live, err := crictl.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: container.GetPodSandboxId()})
	must(t, err, "inspectp")
	config := &cri.PodSandboxConfig{Metadata: live.GetStatus().GetMetadata(), Annotations: map[string]string{"kubernetes.io/config.source": "api"}, Linux: &cri.LinuxPodSandboxConfig{}}
	_, err = crictl.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: container.GetPodSandboxId(), SandboxConfig: config, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "by-hand"}, Image: container.GetImage(), Mounts: []*cri.Mount{{HostPath: "/", ContainerPath: "/host"}},
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{Privileged: true}},
	}})
	if grpcstatus.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "the host's / at /host") {
		t.Errorf("create: %v, want it refused", err)
	}
	config = &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Namespace: "default", Name: "by-hand", Uid: strings.Repeat("0", 32)},
		Linux: &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{
			Privileged: true, NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_NODE},
		}},
	}
	if _, err := crictl.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config}); grpcstatus.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "hostNetwork, hostPID") {
		t.Errorf("runp: %v, want it refused", err)
	}

	if out, err := exec.Command("ctr", "--address", p.guardSocket(), "--namespace", "k8s.io", "containers", "list").CombinedOutput(); err == nil || !strings.Contains(string(out), "credence-node guard does not know /containerd.services.containers.v1.Containers/List") {
		t.Errorf("ctr: %v: %s", err, out)
	}
}

// Pods of the kubelet's own files run as the template has it, or not at all, unless they are allowed by name and image. Pods of the API run as they
// ask to, with a verdict of the API. A guard that is killed loses no container.
func TestNodeGuard(t *testing.T) {
	needNode(t)
	first(t, ofPlane+ofNode, 4)
	allowed := filepath.Join(t.TempDir(), "allow.yaml")
	allow := func(content string) {
		t.Helper()
		must(t, os.WriteFile(allowed, []byte(content), 0o600))
	}
	allow("pods: []\n")
	p := nodePlane(t, "--guard", "restricted", "--guard-allow", allowed)
	free := []string{"Uid: 0 0 0 0", "Gid: 0 0 0 0", "NoNewPrivs: 0", "Seccomp: 0", "written"}

	nodes := need(p.client(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}))(t)
	for _, node := range nodes.Items {
		if version := node.Status.NodeInfo.ContainerRuntimeVersion; !strings.HasSuffix(version, "+credence-guard") {
			t.Errorf("node %s has the runtime %s, without the guard", node.Name, version)
		}
	}

	ofAPI := askingPod("of-the-api")
	p.createPod(t, "default", ofAPI)
	has := p.confined(t, "of-the-api")
	expect(t, lacks(strings.Join(has, "\n"), free...), "a pod of the API")
	_, digest := p.containerOf(t, "of-the-api")

	p.runStatic(t, askingPod("weak"))
	if has := strings.Join(p.confined(t, "weak-127.0.0.1"), "\n"); has != tightened {
		t.Errorf("a static pod has\n%s\nwant\n%s", has, tightened)
	}

	p.byHand(t, "weak-127.0.0.1")

	// Anything else is refused, where people look.
	p.runStatic(t, hostPod("host"))
	p.describedBy(t, "host-127.0.0.1", "CreateContainerError", `container "main" with image `, "the host's / at /host: credence-node guard refuses that by its template restricted", "list pod default/host and the digests of its images")
	network := askingPod("network")
	network.Spec.HostNetwork, network.Spec.HostPID = true, true
	p.runStatic(t, network)
	p.describedBy(t, "network-127.0.0.1", "FailedCreatePodSandBox", "pod default/network-127.0.0.1, which does not come from the API: hostNetwork, hostPID: credence-node guard refuses")

	// One that is allowed has all that it wants, by its name and with its image alone.
	allow("pods:\n- {pod: default/trusted, images: ['" + digest + "']}\n- {pod: default/replaced, images: ['sha256:" + strings.Repeat("0", 64) + "']}\n")
	p.runStatic(t, hostPod("replaced"))
	p.describedBy(t, "replaced-127.0.0.1", "the host's / at /host: credence-node guard refuses")
	p.runStatic(t, hostPod("trusted"))
	has = p.confined(t, "trusted-127.0.0.1")
	expect(t, lacks(strings.Join(has, "\n"), append([]string{"proc"}, free...)...), "an allowed pod")

	// A file that is damaged keeps static pods from starting, and no others.
	allow("pods: everything\n")
	p.runStatic(t, askingPod("undecided"))
	p.describedBy(t, "undecided-127.0.0.1", "credence-node guard creates nothing of it: read which pods are allowed: "+allowed)
	p.createPod(t, "default", askingPod("of-the-api-too"))
	p.confined(t, "of-the-api-too")
	allow("pods: []\n")
	p.confined(t, "undecided-127.0.0.1")

	// The guard dies. Containers stay, and when it is back the kubelet goes on.
	pods := []string{"of-the-api", "weak-127.0.0.1", "trusted-127.0.0.1"}
	before := map[string]string{}
	for _, pod := range pods {
		before[pod], _ = p.containerOf(t, pod)
	}
	guard := p.part(t, "guard")
	must(t, syscall.Kill(guard.PID, syscall.SIGKILL))
	eventually(t, func() error {
		if now := p.part(t, "guard"); !now.Healthy || now.PID == guard.PID {
			return fmt.Errorf("guard: %+v", now)
		}
		return nil
	})
	p.createPod(t, "default", askingPod("later"))
	p.confined(t, "later")
	p.runStatic(t, askingPod("weak-later"))
	if has := p.confined(t, "weak-later-127.0.0.1"); has[0] != "Uid: 65532 65532 65532 65532" {
		t.Errorf("a static pod has %q", has)
	}
	for _, pod := range pods {
		if id, _ := p.containerOf(t, pod); id != before[pod] {
			t.Errorf("pod %s has the container %s, and had %s", pod, id, before[pod])
		}
	}
	p.must(t, "", "kubectl", "-n", "default", "exec", "weak-127.0.0.1", "--", "/busybox", "touch", "/cache/written")
	t.Run("reviews", func(t *testing.T) { reviewsOfANode(t, p) })
	t.Run("credential specs", func(t *testing.T) { credentialSpecsOfANode(t, p) })
	t.Run("without the API", func(t *testing.T) { staticPodsWithoutTheAPI(t, p, digest, allow) })
	t.Run("pods of a URL", func(t *testing.T) { podsOfAURL(t, p) })
	p.must(t, "", "kubectl", "-n", "default", "delete", "pod", "--ignore-not-found", "of-the-api", "of-the-api-too", "later", "past-policies", "as-asked", "waits") // a node has at most 110
	t.Run("kills", func(t *testing.T) { podsOutliveKills(t, p) })
}

// gatedPod is askingPod of an account, which is not scheduled before its gate is taken off.
func (p plane) gatedPod(t *testing.T, name, account string) (start func()) {
	t.Helper()
	pod := askingPod(name)
	pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = account, []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	p.createPod(t, "default", pod)
	return func() {
		t.Helper()
		p.must(t, "", "kubectl", "-n", "default", "patch", "pod", name, "--type=json", "--patch", `[{"op":"remove","path":"/spec/schedulingGates"}]`)
	}
}

// A pod that was admitted while its profile was not applied is held, and one that has what the profile wants runs. Its container restarts while the API
// is away; a pod without a verdict waits for it.
func reviewsOfANode(t *testing.T, p plane) {
	p.must(t, "", "kubectl", "-n", "default", "create", "serviceaccount", "reviewed")
	p.must(t, profileOf("reviewed", `{"securityContext":{"mode":"Enforce","container":{"readOnlyRootFilesystem":true}}}`), "kubectl", "-n", "default", "apply", "-f", "-")
	past, waits := p.gatedPod(t, "past-policies", "reviewed"), p.gatedPod(t, "waits", "default")
	p.must(t, "", "kubectl", "label", "namespace", "default", "identity.credence.dev/profiles=enabled")
	past()
	asked := askingPod("as-asked")
	asked.Spec.ServiceAccountName = "reviewed"
	eventually(t, func() error { // a moment after the first label kube-apiserver has found the kind of the policy's parameters
		return errOf(p.client(t).CoreV1().Pods("default").Create(t.Context(), asked, metav1.CreateOptions{}))
	})
	if has := strings.Join(p.confined(t, "as-asked"), "\n"); !strings.Contains(has, "Uid: 0 0 0 0") || strings.Contains(has, "written") {
		t.Errorf("a pod that has what its profile wants, and all else that it can have, has\n%s", has)
	}
	p.describedBy(t, "past-policies", "CreateContainerError",
		`pod default/past-policies: credence-node guard holds container "main": spec.containers[0].securityContext.readOnlyRootFilesystem: has nothing, and ServiceAccountProfile default/reviewed wants true`)

	// The API server of Credence stops to answer.
	id, _ := p.containerOf(t, "as-asked")
	pid := p.part(t, "apiserver").PID
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := sync.OnceValue(func() error { return syscall.Kill(pid, syscall.SIGCONT) })
	defer func() { _ = resume() }()
	_, hex, _ := strings.Cut(id, "containerd://")
	need(p.crictl(t).StopContainer(t.Context(), &cri.StopContainerRequest{ContainerId: hex}))(t)
	waits()
	eventually(t, func() error {
		got, err := p.client(t).CoreV1().Pods("default").Get(t.Context(), "as-asked", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.ContainerStatuses {
			if c.State.Running != nil && c.ContainerID != id {
				return nil
			}
		}
		return fmt.Errorf("the container does not run again: %+v", got.Status.ContainerStatuses)
	})
	p.describedBy(t, "waits", "CreateContainerError", `credence-node guard creates container "main" only when the API has reviewed the pod, and it has not: `)
	must(t, resume())
	p.confined(t, "waits")
}
