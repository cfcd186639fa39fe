package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/credence-id/credence/devcluster/internal/network"
)

// An object that exists is left as it is: a user may have changed it.
func TestObjectsOfTheNode(t *testing.T) {
	client := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: dnsName, Labels: map[string]string{"changed": "yes"}}})
	for range 2 {
		if err := ensureObjects(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	service, err := client.CoreV1().Services("kube-system").Get(t.Context(), dnsName, metav1.GetOptions{})
	if err != nil || service.Labels["changed"] != "yes" {
		t.Errorf("%+v, %v", service, err)
	}
	slice, err := client.DiscoveryV1().EndpointSlices("kube-system").Get(t.Context(), dnsName, metav1.GetOptions{})
	if err != nil || slice.Endpoints[0].Addresses[0] != network.Node || len(slice.Ports) != 2 || *slice.Ports[0].Name != "dns" || *slice.Ports[1].Name != "dns-tcp" {
		t.Errorf("%+v, %v", slice, err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(bindings.Items) != 2 {
		t.Errorf("%+v, %v", bindings, err)
	}
}

// A report of an earlier run does not count.
func TestReady(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 700e6, time.UTC)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, after time.Duration) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Message: "no network", LastHeartbeatTime: metav1.NewTime(began.Truncate(time.Second).Add(after))}
	}
	for name, test := range map[string]struct {
		conditions []corev1.NodeCondition
		want       string
	}{
		"ready":           {[]corev1.NodeCondition{condition("DiskPressure", "False", 0), condition(corev1.NodeReady, "True", 0)}, ""},
		"not ready":       {[]corev1.NodeCondition{condition(corev1.NodeReady, "False", time.Second)}, "is not ready: no network"},
		"from before":     {[]corev1.NodeCondition{condition(corev1.NodeReady, "True", -time.Second)}, "has not reported ready yet"},
		"no report":       {nil, "has not reported ready yet"},
		"of another kind": {[]corev1.NodeCondition{condition("MemoryPressure", "True", 0)}, "has not reported ready yet"},
	} {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Name}, Status: corev1.NodeStatus{Conditions: test.conditions}})
		if err := isReady(t.Context(), client, began); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := isReady(t.Context(), fake.NewClientset(), began); err == nil || !strings.Contains(err.Error(), "look at node") {
		t.Errorf("no node: %v", err)
	}
}

// Settings of the kernel that the kubelet changes are changed back, unless they were its already, or someone has changed them since.
func TestTunables(t *testing.T) {
	kernel, folder := t.TempDir(), t.TempDir()
	set := func(name, value string) {
		t.Helper()
		path := filepath.Join(kernel, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("vm/overcommit_memory", "0\n")
	set("kernel/panic", "10\n")
	set("kernel/panic_on_oops", "0\n")
	if err := rememberTunables(kernel, folder); err != nil {
		t.Fatal(err)
	}
	set("vm/overcommit_memory", "1\n")
	set("kernel/panic_on_oops", "2\n")
	for range 2 { // the second time there is nothing to do
		if err := restoreTunables(kernel, folder); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		content, err := os.ReadFile(filepath.Join(kernel, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = strings.TrimSpace(string(content))
	}
	if diff := cmp.Diff(map[string]string{"vm/overcommit_memory": "0", "kernel/panic": "10", "kernel/panic_on_oops": "2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(folder, tunablesName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restoreTunables(kernel, folder); err == nil || !strings.Contains(err.Error(), tunablesName+" is damaged") {
		t.Errorf("a damaged file: %v", err)
	}
}

// Nothing is taken from the machine by a process that shares its mounts.
func TestChildRefusesTheMountsOfOthers(t *testing.T) {
	if err := Child(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "is started by credence-devcluster --node only") {
		t.Errorf("%v", err)
	}
}

func TestFoldersOfANode(t *testing.T) {
	if err := Clean(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("no node: %v", err)
	}
	folder := t.TempDir()
	for _, name := range []string{"machine/run/containerd", "containerd/images", "containerd-state"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, processesName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Clean(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string]bool{"machine/run/containerd": false, "containerd-state": false, processesName: false, "containerd/images": true} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != left {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a, b := groupName("/a"), groupName("/b"); a == b || a != groupName("/a") || !strings.HasPrefix(a, "credence-") {
		t.Errorf("control groups are %s and %s", a, b)
	}
}
