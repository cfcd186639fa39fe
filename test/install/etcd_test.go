package install

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// identitiesInEtcd has them in an etcd of three members, by TLS with client certificates. A lost member takes nothing with it, and fails no
// token request; an API server that starts meanwhile does without it. The keys are those of a signer in a pod, which can be replaced, too.
func (p *partial) identitiesInEtcd(t *testing.T, i *installation) {
	servers := p.etcd(t, i.folder)
	signer := p.signer(t, i)
	p.install(t, "issuer="+issuer, "workloads.enabled=false", "gmsa.enabled=false", "keys.signerSocket="+signer.socket, "storage.type=etcd", "storage.etcd.secret=credence-etcd", "storage.etcd.servers={"+strings.Join(servers, ",")+"}")
	p.runs(t, "apiserver", "certificates", "discovery")
	available(t, p.ControlPlane)
	identities := p.objects.Resource(workloadIdentities).Namespace("default")
	create := func(ctx context.Context, name string) error {
		_, err := makeIdentity(ctx, identities, name)
		return err
	}
	if err := create(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	eventually(t, tokenRequested(p.client, "default")) // an API server reads the keys of the signer first
	p.helm(t, "test", "credence")
	subject := verified(t, p.client)

	now := int64(0)
	if err := p.client.CoreV1().Pods("etcd").Delete(t.Context(), "etcd-0", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again := verified(t, p.client); again != subject {
			t.Errorf("the subject is %s, was %s", again, subject)
		}
	}
	eventually(t, func(ctx context.Context) error { return create(ctx, "another") })
	signer.replace(t)
	eventually(t, tokenRequested(p.client, "default"))
	p.replaceAPIServers(t)
	available(t, p.ControlPlane)
	eventually(t, func(ctx context.Context) error {
		list, err := identities.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("%d identities, want 2", len(list.Items))
		}
		return err
	})
	eventually(t, tokenRequested(p.client, "default"))
	if again := verified(t, p.client); again != subject {
		t.Errorf("the subject is %s after the start, was %s", again, subject)
	}
	p.moveIntoRecords(t)
	if again := verified(t, p.client); again != subject {
		t.Errorf("the subject is %s in records, was %s", again, subject)
	}
}

// forgetKeys deletes the namespace of an installation before, and makes an empty one.
func (p *partial) forgetKeys(t *testing.T) {
	t.Helper()
	deleteNamespace(t, p.client, system)
	makeNamespace(t, p.client, system, nil)
}

// replaceAPIServers deletes the pods of the API server, and waits until others are ready.
func (p *partial) replaceAPIServers(t *testing.T) {
	t.Helper()
	pods, ofServer := p.client.CoreV1().Pods(system), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=apiserver"}
	before, err := pods.List(t.Context(), ofServer)
	if err == nil {
		err = pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, ofServer)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		now, err := pods.List(ctx, ofServer)
		if err != nil {
			return err
		}
		if len(now.Items) != len(before.Items) {
			return fmt.Errorf("%d pods of the API server, want %d", len(now.Items), len(before.Items))
		}
		for _, pod := range now.Items {
			if !ready(pod) || slices.ContainsFunc(before.Items, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
				return fmt.Errorf("%s is not ready, or of before", pod.Name)
			}
		}
		return nil
	})
}

// etcd runs three members in pods of the namespace etcd, gives the chart's namespace a Secret of a client of theirs, and returns their URLs.
func (p *partial) etcd(t *testing.T, folder string) (servers []string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), controlplane.Program("credence-devcluster"), "load-image", "--dir", folder, "etcd:test", controlplane.Program("etcd"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	core := p.client.CoreV1()
	makeNamespace(t, p.client, "etcd", nil)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{"app": "etcd"}, Ports: []corev1.ServicePort{{Port: 2379}},
	}}
	if _, err := core.Services("etcd").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	authority := testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil)
	// etcd finds the address of a peer by these names, so none is a wildcard.
	certificate := testkit.NewCertificate(t, x509.Certificate{
		DNSNames: []string{"etcd-0.etcd.etcd.svc", "etcd-1.etcd.etcd.svc", "etcd-2.etcd.etcd.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority)
	for _, namespace := range []string{"etcd", system} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credence-etcd"}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"ca.crt": authority.PEM(), "tls.crt": certificate.PEM(), "tls.key": certificate.KeyPEM()}}
		if _, err := core.Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	names, peers := []string{"etcd-0", "etcd-1", "etcd-2"}, []string{}
	for _, name := range names {
		servers, peers = append(servers, "https://"+name+".etcd.etcd.svc:2379"), append(peers, name+"=https://"+name+".etcd.etcd.svc:2380")
	}
	for n, name := range names {
		arguments := []string{"--name=" + name, "--data-dir=/data/etcd", "--initial-cluster=" + strings.Join(peers, ","), "--initial-advertise-peer-urls=" + strings.SplitN(peers[n], "=", 2)[1],
			"--advertise-client-urls=" + servers[n], "--listen-client-urls=https://0.0.0.0:2379", "--listen-peer-urls=https://0.0.0.0:2380"}
		for _, prefix := range []string{"", "peer-"} {
			arguments = append(arguments, "--"+prefix+"cert-file=/tls/tls.crt", "--"+prefix+"key-file=/tls/tls.key", "--"+prefix+"trusted-ca-file=/tls/ca.crt", "--"+prefix+"client-cert-auth")
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "etcd"}}, Spec: corev1.PodSpec{
			Hostname: name, Subdomain: "etcd",
			Containers: []corev1.Container{{
				Name: "etcd", Image: "etcd:test", ImagePullPolicy: corev1.PullNever, Args: arguments,
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(2379)}}},
				VolumeMounts:   []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}, {Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "credence-etcd"}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		}}
		eventually(t, func(ctx context.Context) error { // the account of the namespace is made meanwhile
			_, err := core.Pods("etcd").Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	eventually(t, func(ctx context.Context) error {
		list, err := core.Pods("etcd").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if !ready(pod) {
				return fmt.Errorf("%s", state(t, p.client, "etcd"))
			}
		}
		return nil
	})
	return servers
}

// externalSigner is a pod that holds the keys, by a socket on the node.
type externalSigner struct {
	pod    *corev1.Pod
	client kubernetes.Interface
	socket string // its path on the node
}

// signer starts one, in the part that a plugin of a KMS has.
func (p *partial) signer(t *testing.T, i *installation) *externalSigner {
	t.Helper()
	const user = 65532 // of the chart's pods: a socket is for one user alone
	folder := filepath.Join(i.folder, "signer")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, user, user); err != nil {
		t.Fatal(err)
	}
	makeNamespace(t, p.client, "signer", nil)
	s := &externalSigner{client: p.client, socket: filepath.Join(folder, "run", "socket"), pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "signer", Namespace: "signer"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext:              &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user)},
			Containers: []corev1.Container{{
				Name: "signer", Image: i.registry + "/credence-server:" + i.tag,
				Args:         []string{"signer", "--issuer=" + issuer, "--keys-dir=/signer/keys", "--socket=/signer/run/socket"},
				VolumeMounts: []corev1.VolumeMount{{Name: "signer", MountPath: "/signer"}},
			}},
			Volumes: []corev1.Volume{{Name: "signer", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}},
		},
	}}
	s.start(t)
	return s
}

func (s *externalSigner) start(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error { // the account of the namespace is made meanwhile
		_, err := s.client.CoreV1().Pods(s.pod.Namespace).Create(ctx, s.pod, metav1.CreateOptions{})
		return err
	})
	eventually(t, func(context.Context) error {
		_, err := os.Stat(s.socket)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, state(t, s.client, s.pod.Namespace))
		}
		return err
	})
}

// replace deletes the pod, and starts another with the same keys.
func (s *externalSigner) replace(t *testing.T) {
	t.Helper()
	pods := s.client.CoreV1().Pods(s.pod.Namespace)
	if err := pods.Delete(t.Context(), s.pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.start(t) // until the pod of before is gone, its name is taken
}

// tokenRequested requests a token of the identity app.
func tokenRequested(client kubernetes.Interface, namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := client.CoreV1().RESTClient().Post().AbsPath("/apis/authentication.gardener.cloud/v1alpha1/namespaces/" + namespace + "/workloadidentities/app/token").
			Body([]byte(`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "TokenRequest", "spec": {}}`)).DoRaw(ctx)
		if err != nil {
			err = fmt.Errorf("request a token: %w\n%s", err, answer)
		}
		return err
	}
}
