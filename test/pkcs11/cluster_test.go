//go:build cgo

package pkcs11

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is a control plane on this machine, with the configuration of its administrator.
type cluster struct{ admin *rest.Config }

// shared is the cluster of all tests.
var shared cluster

// start runs the credence-devcluster of make build, and returns how to stop it once it is ready.
func (c *cluster) start(ctx context.Context, dir string) (stop func(), err error) {
	bin := os.Getenv("CREDENCE_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "credence-devcluster"), "--dir", dir, "--port", fmt.Sprint(port))
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a cluster, which make build makes: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.ready(ctx, filepath.Join(dir, "admin.kubeconfig"))
		if err == nil {
			return stop, nil
		}
		select {
		case <-tick.C:
		case exit := <-ended:
			return nil, fmt.Errorf("the cluster ended: %v\n%s", exit, log.String())
		case <-ctx.Done():
			stop()
			return nil, fmt.Errorf("the cluster is not ready: %w\n%s", err, log.String())
		}
	}
}

func (c *cluster) ready(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c.admin = config
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// sign gets a certificate for a request by the cluster's own API, as an administrator approves it.
func (c *cluster) sign(ctx context.Context, request []byte) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	api := client.CertificatesV1().CertificateSigningRequests()
	created, err := api.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "device-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	created.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := api.UpdateApproval(ctx, created.Name, created, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := api.Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if len(now.Status.Certificate) > 0 {
			return now.Status.Certificate, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("request %s is not signed: %v", created.Name, now.Status.Conditions)
		}
	}
}
