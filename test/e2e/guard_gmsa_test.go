package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// runAsWindows does what a kubelet of Windows does for a pod with one container, on the guard's socket, and returns how many containers the runtime has
// of it. containerd has no use on Linux for a credential spec. Nothing is left.
func (p plane) runAsWindows(t *testing.T, pod *corev1.Pod, ofSandbox, ofContainer string) (created int, err error) {
	t.Helper()
	crictl, ctx := p.crictl(t), t.Context()
	group := sha256.Sum256([]byte(filepath.Join(p.Dir, "devcluster", "node")))
	config := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Namespace: pod.Namespace, Name: pod.Name, Uid: string(pod.UID)},
		Annotations: map[string]string{"kubernetes.io/config.source": "api"},
		Linux:       &cri.LinuxPodSandboxConfig{CgroupParent: "/credence-" + hex.EncodeToString(group[:5])},
		Windows:     &cri.WindowsPodSandboxConfig{SecurityContext: &cri.WindowsSandboxSecurityContext{CredentialSpec: ofSandbox}},
	}
	sandbox, err := crictl.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		return 0, err
	}
	_, err = crictl.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: sandbox.GetPodSandboxId(), SandboxConfig: config, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: pod.Spec.Containers[0].Name}, Image: &cri.ImageSpec{Image: "docker.io/library/busybox:e2e"},
		Windows: &cri.WindowsContainerConfig{SecurityContext: &cri.WindowsContainerSecurityContext{CredentialSpec: ofContainer}},
	}})
	listed, failed := crictl.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{PodSandboxId: sandbox.GetPodSandboxId()}})
	if failed != nil {
		t.Error(failed)
	}
	expect(t, errOf(crictl.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox.GetPodSandboxId()})))
	expect(t, errOf(crictl.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.GetPodSandboxId()})))
	return len(listed.GetContainers()), err
}

// A container has the credential spec of its object, of an account that may use it, or is not created, whatever became of both since the pod was
// admitted. The pods are real ones of Windows, bound to this node; its own kubelet, which would only end them, waits meanwhile.
func credentialSpecsOfANode(t *testing.T, p plane) {
	namespace, spec := p.credentialSpecs(t, "webapp", "changed", "withdrawn")
	kubelet := p.part(t, "kubelet").PID
	must(t, syscall.Kill(kubelet, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(kubelet, syscall.SIGCONT) }()
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"webapp", "changed", "withdrawn"} {
		pod := need(p.client(t).CoreV1().Pods(namespace).Create(t.Context(), windowsPod(gmsaOf(spec(name), ""), func(pod *corev1.Pod) { pod.Spec.NodeName = "127.0.0.1" }), metav1.CreateOptions{}))(t)
		if got := ptr.Deref(pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpec, ""); got != credentialContents {
			t.Fatalf("pod %s has %q", name, got)
		}
		pods[name] = pod
	}
	defer func() {
		for _, pod := range pods {
			expect(t, p.client(t).CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
		}
	}()
	const machine = "WebApplication2"
	p.must(t, "", "kubectl", "patch", "gmsacredentialspec", spec("changed"), "--type=merge", "--patch", `{"credspec":{"DomainJoinConfig":{"MachineAccountName":"`+machine+`"}}}`)
	changed := strings.Replace(credentialContents, `"MachineAccountName":"WebApplication1"`, `"MachineAccountName":"`+machine+`"`, 1)

	if created, err := p.runAsWindows(t, pods["webapp"], credentialContents, credentialContents); err != nil || created != 1 {
		t.Errorf("of its object, and of an account that may use it: %d containers, %v", created, err)
	}
	held := func(what, pod, ofSandbox, ofContainer, reason string) {
		t.Helper()
		created, err := p.runAsWindows(t, pods[pod], ofSandbox, ofContainer)
		if grpcstatus.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "credence-node guard holds ") || !strings.Contains(err.Error(), reason) || created != 0 {
			t.Errorf("%s: %d containers, %v, want it held: %s", what, created, err, reason)
		}
		if err != nil && (strings.Contains(err.Error(), machine) || strings.Contains(err.Error(), "WebApplication1")) {
			t.Errorf("%s: contents are shown: %v", what, err)
		}
	}
	held("another one", "webapp", "", changed, `container "iis" has a credential spec at the container runtime that is not the one of its pod`)
	held("another one in the sandbox", "webapp", changed, "", "has a credential spec at the container runtime that is not the one of its pod")
	held("as before its object was changed", "changed", "", credentialContents, "gmsaCredentialSpec: has sha256:")
	held("as before, in the sandbox", "changed", credentialContents, "", "gmsaCredentialSpec: has sha256:")
	held("as its object, and not as its pod", "changed", "", changed, "gmsaCredentialSpec: has sha256:")

	must(t, p.client(t).RbacV1().RoleBindings(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually(t, func() error {
		if answer, _, _ := p.command(t, "", "kubectl", "auth", "can-i", "use", "gmsacredentialspecs.windows.k8s.io/"+spec("withdrawn"), "-n", namespace, "--as", "system:serviceaccount:"+namespace+":default"); strings.TrimSpace(answer) != "no" {
			return fmt.Errorf("the account may still use the credential spec: %s", answer)
		}
		return nil
	})
	mayNot := `service account "default" of namespace "` + namespace + `" may not use GMSACredentialSpec "` + spec("withdrawn") + `"`
	held("of an account that may not use it", "withdrawn", "", credentialContents, mayNot)
	held("of one that may not use it, in the sandbox", "withdrawn", credentialContents, "", mayNot)
}
