//go:build cgo

package pkcs11

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cluster is a control plane, as its administrator sees it.
type cluster struct{ admin *rest.Config }

// shared is the cluster of all tests.
var shared cluster

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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
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
