package kubeapi

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/credential/clientcertificate"
)

const signingRequests = "certificatesigningrequests"

type certificates struct{ *client }

// Create implements clientcertificate.API.
func (c certificates) Create(ctx context.Context, wanted clientcertificate.SigningRequest) (clientcertificate.Progress, error) {
	request := certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: wanted.Name},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: wanted.CSR, SignerName: wanted.Signer},
	}
	for _, usage := range wanted.Usages {
		request.Spec.Usages = append(request.Spec.Usages, certificatesv1.KeyUsage(usage))
	}
	if wanted.Duration > 0 {
		request.Spec.ExpirationSeconds = new(int32(wanted.Duration / time.Second))
	}
	var answer certificatesv1.CertificateSigningRequest
	err := c.certificates.Post().MaxRetries(0).Resource(signingRequests).Body(&request).Do(ctx).Into(&answer)
	if apierrors.IsAlreadyExists(err) {
		return clientcertificate.Progress{}, fmt.Errorf("%w: %s", clientcertificate.ErrExists, wanted.Name)
	}
	if err != nil {
		return clientcertificate.Progress{}, c.classified(err, rights{verb: "create", resource: signingRequests, group: certificatesv1.GroupName})
	}
	return progress(answer), nil
}

// Get implements clientcertificate.API.
func (c certificates) Get(ctx context.Context, name string) (clientcertificate.Progress, error) {
	var answer certificatesv1.CertificateSigningRequest
	err := c.certificates.Get().MaxRetries(0).Resource(signingRequests).Name(name).Do(ctx).Into(&answer)
	if apierrors.IsNotFound(err) && !nothingServes(err) {
		return clientcertificate.Progress{}, fmt.Errorf("%w: %s", clientcertificate.ErrNotFound, name)
	}
	if err != nil {
		return clientcertificate.Progress{}, c.classified(err, rights{verb: "get", resource: signingRequests, group: certificatesv1.GroupName})
	}
	return progress(answer), nil
}

func progress(request certificatesv1.CertificateSigningRequest) clientcertificate.Progress {
	p := clientcertificate.Progress{CSR: request.Spec.Request, Signer: request.Spec.SignerName, Certificate: request.Status.Certificate}
	for _, condition := range request.Status.Conditions {
		// The API has these conditions True only; elsewhere an Unknown one decides nothing.
		if condition.Status != corev1.ConditionTrue && condition.Status != "" {
			continue
		}
		verdict := &clientcertificate.Verdict{Reason: plain(condition.Reason), Message: plain(condition.Message)}
		switch condition.Type {
		case certificatesv1.CertificateApproved:
			p.Approved = true
		case certificatesv1.CertificateDenied:
			p.Denied = verdict
		case certificatesv1.CertificateFailed:
			p.Failed = verdict
		}
	}
	return p
}
