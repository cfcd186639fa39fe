package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// inMounts is a command in the mounts of the node's kubelet.
func (p plane) inMounts(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command("nsenter", append([]string{"--target", strconv.Itoa(p.part(t, "kubelet").PID), "--mount", "--"}, args...)...)
}

func (p plane) kubeletDir() string { return filepath.Join(p.Dir, "devcluster", "node", "kubelet") }

// driverLog is the log of the node, the driver's among it.
func (p plane) driverLog(t *testing.T) string {
	t.Helper()
	return string(need(os.ReadFile(filepath.Join(p.Dir, "logs", "devcluster.log")))(t))
}

// identityPod has the token of an identity in a volume of the driver, and stays.
func identityPod(name, identity string, user int64, group *int64) *corev1.Pod {
	readOnly, grace, root := true, int64(1), user != 0
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			HostNetwork: true, ServiceAccountName: "web", TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: new(bool),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &user, RunAsNonRoot: &root, FSGroup: group},
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox:e2e", ImagePullPolicy: corev1.PullNever,
				Command:      []string{"/busybox", "sh", "-c", "/busybox stat -L -c '%n %a %g' /id/*; while true; do /busybox cat /id/token; echo; /busybox sleep 1; done"},
				VolumeMounts: []corev1.VolumeMount{{Name: "identity", MountPath: "/id", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "identity", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				Driver: v1alpha1.CSIDriver, ReadOnly: &readOnly,
				VolumeAttributes: map[string]string{v1alpha1.VolumeAttributeIdentity: identity, v1alpha1.VolumeAttributeMountPath: "/id"},
			}}}},
		},
	}
}

// A pod has its token without a Secret: with its own service-account token, and so what its account may use alone. The token verifies,
// processes of any user read it, and nothing of it is left. A driver that was killed finds its volumes again.
func tokensWithoutSecrets(t *testing.T, p plane) {
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("nsenter is missing: install util-linux")
	}
	namespace := p.namespace(t)
	p.awsIdentity(t, namespace, "banana", "banana")
	eventually(t, func() error {
		return errOf(p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}))
	})

	// Whatever is wrong is in an Event of the pod.
	unknown := identityPod("unknown", "banana", 1000, nil)
	unknown.Spec.Volumes[0].CSI.VolumeAttributes["audience"] = "x"
	p.createPod(t, namespace, unknown)
	p.createPod(t, namespace, identityPod("plain", "banana", 1000, nil))
	p.waitHeldBack(t, namespace, "unknown", `volumeAttributes of the volume has "audience", which is not an attribute`)
	p.waitHeldBack(t, namespace, "plain", "no token of workload identity "+namespace+"/banana for pod "+namespace+"/plain: ")

	p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace})
	group := int64(4711)
	p.createPod(t, namespace, identityPod("grouped", "banana", 1000, &group))
	files := func(mode string) []string {
		return []string{"/id/config " + mode, "/id/credentialsFile " + mode, "/id/token " + mode}
	}
	for pod, want := range map[string][]string{"plain": files("644 0"), "grouped": files("440 4711")} {
		p.waitForLog(t, namespace, pod, "eyJ")
		lines := strings.Split(p.must(t, "", "kubectl", "-n", namespace, "logs", pod), "\n")
		if got := lines[:3]; !slices.Equal(got, want) {
			t.Errorf("pod %s has %q, want %q", pod, got, want)
		}
		token := lines[3]
		shown := p.must(t, token, "credence", "token", "verify", "-", "--issuer", p.Issuer, "--ca-file", p.CAFile, "-o", "json")
		for _, want := range []string{namespace + ":banana:", pod} {
			if !strings.Contains(shown, want) {
				t.Errorf("the token of pod %s is %s, want %q in it", pod, shown, want)
			}
		}
		if strings.Contains(p.driverLog(t), token) {
			t.Error("the token is in the log of the driver")
		}
	}
	if secrets, err := p.client(t).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are Secrets: %v, %v", secrets, err)
	}

	// The token is damaged, and the driver killed: the next one renews the token when the kubelet publishes the volume again.
	p.damageTokens(t, namespace)
	p.waitForLog(t, namespace, "plain", "damaged")
	began := time.Now()
	must(t, syscall.Kill(p.part(t, "credence-node").PID, syscall.SIGKILL))
	waitFor(t, kubeletPatience, func() error {
		if got, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "exec", "plain", "--", "/busybox", "cat", "/id/token"); !strings.HasPrefix(got, "eyJ") {
			return fmt.Errorf("the token is %q %s", got, stderr)
		}
		return nil
	})
	t.Logf("renewal went on %s after the driver was killed", time.Since(began).Round(time.Second))

	// A kubelet that restarts finds the driver again.
	kubelet := p.part(t, "kubelet")
	must(t, syscall.Kill(kubelet.PID, syscall.SIGKILL))
	waitFor(t, kubeletPatience, func() error {
		if now := p.part(t, "kubelet"); !now.Healthy || now.PID == kubelet.PID {
			return fmt.Errorf("kubelet: %+v", now)
		}
		return nil
	})
	p.createPod(t, namespace, identityPod("later", "banana", 1000, nil))
	p.waitForLog(t, namespace, "later", "eyJ")

	for _, pod := range []string{"unknown", "plain", "grouped", "later"} {
		p.must(t, "", "kubectl", "-n", namespace, "delete", "pod", pod)
	}
	waitFor(t, kubeletPatience, func() error {
		mounts, err := p.inMounts(t, "cat", "/proc/self/mountinfo").Output()
		if err != nil {
			return err
		}
		if strings.Contains(string(mounts), "kubernetes.io~csi") {
			return errors.New("volumes are still mounted")
		}
		left, err := filepath.Glob(filepath.Join(p.kubeletDir(), "pods", "*", "volumes", "kubernetes.io~csi", "*"))
		if err != nil || len(left) > 0 {
			return fmt.Errorf("there is %v, %v", left, err)
		}
		return nil
	})
}

// A pod whose volume has no room waits, with the reason in an Event and nothing half-written, and starts once there is room.
func volumeWithoutRoom(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.awsIdentity(t, namespace, "banana", "banana")
	p.userOf(t, namespace, "web", "banana")
	pod := identityPod("full", "banana", 1000, nil)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	p.createPod(t, namespace, pod)
	made := need(p.client(t).CoreV1().Pods(namespace).Get(t.Context(), "full", metav1.GetOptions{}))(t)
	// Memory that a driver has mounted, and root of the node has filled before the driver wrote.
	mount := filepath.Join(p.kubeletDir(), "pods", string(made.UID), "volumes", "kubernetes.io~csi", "identity", "mount")
	inMount := func(script string) string {
		t.Helper()
		out, err := p.inMounts(t, "sh", "-c", script, "sh", mount).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return string(out)
	}
	inMount(`mkdir -p "$1" && mount -t tmpfs -o mode=0755,size=64k none "$1" && ! head -c 131072 /dev/zero > "$1/filler" 2>/dev/null`)
	p.must(t, "", "kubectl", "-n", namespace, "patch", "pod", "full", "--type=json", "--patch", `[{"op":"remove","path":"/spec/schedulingGates"}]`)
	p.waitHeldBack(t, namespace, "full", "the volume has no token: the volume is full, and keeps the files that it has: write into "+mount)
	eventually(t, func() error { // unless the driver tries again just now
		if has := inMount(`ls -A "$1"`); has != "filler\n" {
			return fmt.Errorf("the volume has %q", has)
		}
		return nil
	})
	inMount(`rm "$1/filler"`)
	waitFor(t, kubeletPatience, func() error {
		if stdout, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "logs", "full"); !strings.Contains(stdout, "eyJ") {
			return fmt.Errorf("logs are %q %s", stdout, stderr)
		}
		return nil
	})
	p.must(t, "", "kubectl", "-n", namespace, "delete", "pod", "full")
	waitFor(t, kubeletPatience, func() error {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(mount))))); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the pod's folder is still there: %v", err)
		}
		return nil
	})
}

// A pod that names no volume has its token by the label of its namespace: in a volume that is not stored, and after the label has changed and the
// pod was made anew, in a Secret. The program in it finds the token in the same place.
func injectedVolumes(t *testing.T, p plane) {
	namespace := p.accountWithIdentities(t, "cart")
	read := func(pod string) string {
		p.createPod(t, namespace, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{
			HostNetwork: true, ServiceAccountName: "web", AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "busybox:e2e", ImagePullPolicy: corev1.PullNever,
				Command: []string{"/busybox", "sh", "-c", `echo "$AWS_ROLE_ARN"; /busybox cat "$AWS_WEB_IDENTITY_TOKEN_FILE"; echo; exec /busybox sleep 3600`}}},
		}})
		p.waitForLog(t, namespace, pod, "eyJ")
		lines := strings.Split(p.must(t, "", "kubectl", "-n", namespace, "logs", pod), "\n")
		if lines[0] != "arn:aws:iam::112233445566:role/cart" {
			t.Errorf("pod %s has the role %q", pod, lines[0])
		}
		return p.must(t, lines[1], "credence", "token", "verify", "-", "--issuer", p.Issuer, "--ca-file", p.CAFile, "-o", "json")
	}
	mounts := func() string {
		return string(need(p.inMounts(t, "cat", "/proc/self/mountinfo").Output())(t))
	}
	must(t, p.deliver(t, namespace, v1alpha1.DeliveryCSI))
	if shown := read("volume"); !strings.Contains(shown, namespace+":cart:") || !strings.Contains(shown, `"volume"`) {
		t.Errorf("the token is %s, want it to name the identity and the pod", shown)
	}
	if !strings.Contains(mounts(), "kubernetes.io~csi/workload-identity-") {
		t.Error("the pod has no volume of the driver")
	}
	must(t, p.deliver(t, namespace, v1alpha1.DeliverySecret))
	p.must(t, "", "kubectl", "-n", namespace, "delete", "pod", "volume")
	if shown := read("secret"); !strings.Contains(shown, namespace+":cart:") || strings.Contains(shown, `"volume"`) {
		t.Errorf("the token is %s, want it to name the identity, and no pod", shown)
	}
	waitFor(t, kubeletPatience, func() error { // that of the first pod goes in a moment
		if strings.Contains(mounts(), "kubernetes.io~csi/workload-identity-") {
			return errors.New("there is a volume of the driver")
		}
		return nil
	})
	p.must(t, "", "kubectl", "-n", namespace, "delete", "pod", "secret")
}

// damageTokens writes something else over the token in each volume of the node.
func (p plane) damageTokens(t *testing.T, namespace string) {
	t.Helper()
	script := `for token in "$1"/pods/*/volumes/kubernetes.io~csi/*/mount/token; do echo damaged > "$token"; done`
	if out, err := p.inMounts(t, "sh", "-c", script, "sh", p.kubeletDir()).CombinedOutput(); err != nil {
		t.Fatalf("damage tokens of %s: %v: %s", namespace, err, out)
	}
}
