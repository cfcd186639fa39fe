package e2e_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/test/testkit"
)

// servingPod is a pod of podProgram.
func servingPod(name string, env ...corev1.EnvVar) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "pod:e2e", ImagePullPolicy: corev1.PullNever,
				Env: append([]corev1.EnvVar{{Name: podProgram, Value: name}}, env...),
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 30, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}},
			}},
		},
	}
}

// Pods reach each other, Services by their names, kube-apiserver and the issuer; kube-apiserver reaches them.
func podsHaveANetwork(t *testing.T, p plane) {
	self := need(os.Executable())(t)
	p.must(t, "", "credence-devcluster", "load-image", "--dir", filepath.Join(p.Dir, "devcluster"), "pod:e2e", self)
	namespace := p.namespace(t)
	pair := testkit.NewCertificate(t, x509.Certificate{DNSNames: []string{"web." + namespace + ".svc"}}, nil)
	certificate := string(pair.PEM())
	onHost := servingPod("on-host")
	onHost.Spec.HostNetwork = true
	for _, pod := range []*corev1.Pod{
		servingPod("web", corev1.EnvVar{Name: "CERTIFICATE", Value: certificate}, corev1.EnvVar{Name: "KEY", Value: string(pair.KeyPEM())}),
		servingPod("client"), onHost,
	} {
		p.createPod(t, namespace, pod)
	}
	service := need(p.client(t).CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)},
		}},
	}, metav1.CreateOptions{}))(t)
	p.must(t, "", "kubectl", "-n", namespace, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=5m")
	web := need(p.client(t).CoreV1().Pods(namespace).Get(t.Context(), "web", metav1.GetOptions{}))(t)

	full := "http://web." + namespace + ".svc.cluster.local"
	documents, issuer := p.Issuer+"/.well-known/openid-configuration", fmt.Sprintf(`"issuer":%q`, p.Issuer)
	for _, test := range []struct{ from, url, want string }{
		{"client", "http://" + web.Status.PodIP + ":8080", "hello from web"},
		{"client", "http://" + service.Spec.ClusterIP, "hello from web"},
		{"client", "http://web", "hello from web"},
		{"client", full, "hello from web"},
		{"web", full, "hello from web"}, // by the way of the Service to itself
		{"client", "https://kubernetes.default.svc/readyz", "ok"},
		{"client", p.APIServer + "/readyz", "ok"},
		{"client", documents, issuer},
		{"on-host", "http://" + web.Status.PodIP + ":8080", "hello from web"},
		{"on-host", full, "hello from web"},
		{"on-host", "http://127.0.0.1:8080", "hello from on-host"},
		{"on-host", "https://kubernetes.default.svc.cluster.local/readyz", "ok"},
		{"on-host", documents, issuer},
	} {
		eventually(t, func() error {
			stdout, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "exec", test.from, "--", "/"+filepath.Base(self), "get", test.url)
			if !strings.Contains(stdout, test.want) {
				return fmt.Errorf("%s gets %s: %q %s, want %q", test.from, test.url, stdout, stderr, test.want)
			}
			return nil
		})
	}
	p.refusedInPods(t, namespace, "/"+filepath.Base(self))
	// Not even with the relay of loopback connections itself, whose port is one of these, can a connection be relayed without end.
	for _, port := range loopbackPorts(t, p.part(t, "kubelet").PID) {
		url := fmt.Sprintf("http://127.0.0.1:%d", port)
		eventually(t, func() error {
			if _, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "exec", "on-host", "--", "/"+filepath.Base(self), "get", url); strings.Contains(stderr, "Timeout") {
				return fmt.Errorf("on-host gets %s: %s", url, stderr)
			}
			return nil
		})
	}

	t.Run("Service through kube-apiserver", func(t *testing.T) {
		eventually(t, func() error {
			if got, stderr, _ := p.command(t, "", "kubectl", "get", "--raw", "/api/v1/namespaces/"+namespace+"/services/web:http/proxy/"); got != "hello from web" {
				return fmt.Errorf("the Service answers %q %s", got, stderr)
			}
			return nil
		})
	})
	t.Run("webhook", func(t *testing.T) { p.webhookInAPod(t, namespace, certificate) })
	t.Run("APIService", func(t *testing.T) { p.apiServerInAPod(t, namespace, certificate) })
}

// loopbackPorts are those of 127.0.0.1 that are listened on in the network of a process (proc_pid_net(5)).
func loopbackPorts(t *testing.T, pid int) []int {
	t.Helper()
	table := need(os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid)))(t)
	var ports []int
	for line := range strings.Lines(string(table)) {
		var number, address, port int
		if _, err := fmt.Sscanf(strings.TrimSpace(line), "%d: %X:%X 00000000:0000 0A", &number, &address, &port); err == nil && address == 0x0100007f {
			ports = append(ports, port)
		}
	}
	if len(ports) < 4 {
		t.Fatalf("the node listens on %v of its loopback only", ports)
	}
	return ports
}

// refusedInPods checks that of this machine's own ports a pod reaches those alone that it is to reach.
func (p plane) refusedInPods(t *testing.T, namespace, program string) {
	t.Helper()
	api := need(url.Parse(p.APIServer))(t)
	var base int
	need(fmt.Sscan(api.Port(), &base))(t)
	for _, host := range []string{"127.0.0.1", "10.98.0.1", "10.97.0.1"} {
		// The aggregated API server's, which listens on the machine.
		url := fmt.Sprintf("https://%s:%d/readyz", host, base+1)
		eventually(t, func() error { // exec itself may fail
			stdout, stderr, code := p.command(t, "", "kubectl", "-n", namespace, "exec", "client", "--", program, "get", url)
			if code == 0 {
				return fatal{fmt.Errorf("a pod gets %s: %q", url, stdout)}
			}
			if !strings.Contains(stderr, "connection refused") {
				return fmt.Errorf("a pod gets %s: %s", url, stderr)
			}
			return nil
		})
	}
}

func (p plane) webhookInAPod(t *testing.T, namespace, certificate string) {
	webhooks := p.client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	need(webhooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "pod.e2e.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				Service:  &registrationv1.ServiceReference{Namespace: namespace, Name: "web", Path: ptr.To("/review")},
				CABundle: []byte(certificate),
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}) })
	eventually(t, func() error {
		_, stderr, _ := p.command(t, "", "kubectl", "-n", namespace, "create", "configmap", "any", "--dry-run=server")
		if !strings.Contains(stderr, "refused by a webhook in a pod") {
			return fmt.Errorf("a ConfigMap is not refused: %s", stderr)
		}
		return nil
	})
}

func (p plane) apiServerInAPod(t *testing.T, namespace, certificate string) {
	const name = "v1." + podGroup
	p.must(t, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":%q},"spec":{"group":%q,"version":"v1","groupPriorityMinimum":1,"versionPriority":1,
		"service":{"namespace":%q,"name":"web"},"caBundle":%q}}`, name, podGroup, namespace, base64.StdEncoding.EncodeToString([]byte(certificate))), "kubectl", "create", "-f", "-")
	t.Cleanup(func() { p.must(t, "", "kubectl", "delete", "apiservice", name) })
	p.must(t, "", "kubectl", "wait", "apiservice", name, "--for=condition=Available", "--timeout=5m")
	eventually(t, func() error {
		if stdout, stderr, _ := p.command(t, "", "kubectl", "get", "--raw", "/apis/"+podGroup+"/v1/anything"); stdout != "hello from web" {
			return fmt.Errorf("the API server in a pod answers %q %s", stdout, stderr)
		}
		return nil
	})
}

// machineNetwork is what the network of this machine is set to: addresses, routes, rules, packet filters and the kernel's settings.
func machineNetwork(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, command := range []string{"busybox ip addr", "busybox ip route show table all", "busybox ip rule", "busybox ip -6 rule", "nft list ruleset"} {
		words := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", command, err, out)
		}
		found[command] = volatile.ReplaceAllString(string(out), "")
	}
	must(t, filepath.WalkDir("/proc/sys/net", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // A device has gone.
		}
		if content, err := os.ReadFile(path); err == nil && entry.Name() != "nf_conntrack_count" {
			found[path] = string(content)
		}
		return nil
	}))
	return found
}

// volatile is what changes by itself in the output of those commands.
var volatile = regexp.MustCompile(`(valid|preferred)_lft \S+|packets \d+ bytes \d+|expires \S+|age \S+`)

// sameNetwork compares what was there before: a kernel module that is loaded on demand brings settings of its own.
func sameNetwork(t *testing.T, when string, before map[string]string) {
	t.Helper()
	after := machineNetwork(t)
	for name, value := range before {
		if after[name] != value {
			t.Errorf("%s, %s has changed from\n%sto\n%s", when, name, value, after[name])
		}
	}
}
