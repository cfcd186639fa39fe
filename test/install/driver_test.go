package install

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/test/testkit"
)

// tokensWithoutSecrets runs the driver of the chart on the node. A pod of a namespace with the Pod Security Standard "restricted" reads its token, and
// no Secret has one. The identities are in a volume, which the next pod of the API server has them from.
func (p *partial) tokensWithoutSecrets(t *testing.T, i *installation) {
	core := p.client.CoreV1()
	// A certificate that the driver shows its health with: its pod is ready once the kubelet has registered it.
	makeNamespace(t, p.client, "credence-node", nil)
	authority := testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil)
	certificate := testkit.NewCertificate(t, x509.Certificate{DNSNames: []string{"credence-node.credence-node.svc"}}, authority)
	if _, err := core.Secrets("credence-node").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "driver-tls"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"ca.crt": authority.PEM(), "tls.crt": certificate.PEM(), "tls.key": certificate.KeyPEM()}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.etcdVolume(t, i)
	p.install(t, "issuer="+issuer, "gmsa.enabled=false", "pods.replicas=1", "storage.type=embedded", "node.enabled=true", "node.tlsSecretName=driver-tls", "workloads.delivery=csi", "node.kubeletDir="+filepath.Join(i.folder, "node", "kubelet"))
	available(t, p.ControlPlane)
	p.helm(t, "test", "credence")
	const namespace = "unstored"
	makeNamespace(t, p.client, namespace, map[string]string{"identity.credence.dev/workload-identities": "enabled", "pod-security.kubernetes.io/enforce": "restricted"})
	identities := p.objects.Resource(workloadIdentities).Namespace(namespace)
	eventually(t, func(ctx context.Context) error {
		_, err := makeIdentity(ctx, identities, "app")
		return err
	})
	mayUseApp(t, p.client, namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{
		RestartPolicy:   corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "app", Image: i.registry + "/credence:" + i.tag, Args: []string{"token", "inspect", "/var/run/secrets/workload-identity/app/token", "-o", "json"},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}}
	eventually(t, func(ctx context.Context) error {
		_, err := core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	succeeded(t, p.client, namespace)
	shown, err := core.Pods(namespace).GetLogs("app", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(shown), ":"+namespace+":app:") || !strings.Contains(string(shown), `"pod"`) {
		t.Errorf("the token is %s, %v; want it to name the identity and the pod", shown, err)
	}
	if secrets, err := core.Secrets(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are Secrets: %v, %v", secrets, err)
	}
	drivers, err := core.Pods("credence-node").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(drivers.Items) != 1 || drivers.Items[0].Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the driver is %+v, %v", drivers, err)
	}
	uid := func(ctx context.Context) (types.UID, error) {
		found, err := identities.Get(ctx, "app", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return found.GetUID(), nil
	}
	before, err := uid(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.replaceAPIServers(t)
	available(t, p.ControlPlane)
	eventually(t, func(ctx context.Context) error {
		if after, err := uid(ctx); err != nil || after != before {
			return fmt.Errorf("after a start the identity has the uid %s, was %s: %w", after, before, err)
		}
		return tokenRequested(p.client, namespace)(ctx)
	})

	// Its volume goes with it, while there is a driver.
	deleteNamespace(t, p.client, namespace)
}

// etcdVolume makes a volume for the embedded etcd of the chart.
func (p *partial) etcdVolume(t *testing.T, i *installation) {
	t.Helper()
	folder := filepath.Join(i.folder, "etcd-volume")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	volumeIn(t, p.client, "etcd", "credence-etcd", folder)
}
