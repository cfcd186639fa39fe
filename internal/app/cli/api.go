package cli

import (
	"context"
	"crypto/x509"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// api is the part of a cluster's API that the commands need.
type api struct {
	core   rest.Interface // v1
	tokens rest.Interface // authentication.gardener.cloud/v1alpha1
	keys   rest.Interface // identity.credence.dev/v1alpha1
	host   string
	http   *http.Client // with the credentials of the user

	authorities *x509.CertPool // those that the kubeconfig has for the server, and of this machine; nil if it has none
}

func (a *api) serviceAccountUID(ctx context.Context, namespace, name string) (types.UID, error) {
	var account corev1.ServiceAccount
	err := a.core.Get().Namespace(namespace).Resource("serviceaccounts").Name(name).Do(ctx).Into(&account)
	return account.UID, err
}

// createToken requests a token of a WorkloadIdentity. The answer is the request with its status filled in.
func (a *api) createToken(ctx context.Context, namespace, name string, spec v1alpha1.TokenRequestSpec) (*v1alpha1.TokenRequest, error) {
	meta := metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"}
	var answer v1alpha1.TokenRequest
	// The client would repeat the request on 503 until its deadline, and hide the reason of the failure.
	err := a.tokens.Post().MaxRetries(0).Namespace(namespace).Resource("workloadidentities").Name(name).SubResource("token").
		Body(&v1alpha1.TokenRequest{TypeMeta: meta, Spec: spec}).Do(ctx).Into(&answer)
	if err != nil {
		return nil, err
	}
	answer.TypeMeta = meta
	return &answer, nil
}

func (a *api) workloadIdentityNames(ctx context.Context, namespace string) ([]string, error) {
	var list v1alpha1.WorkloadIdentityList
	if err := a.tokens.Get().Namespace(namespace).Resource("workloadidentities").Do(ctx).Into(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i, item := range list.Items {
		names[i] = item.Name
	}
	return names, nil
}

func (a *api) serviceAccountNames(ctx context.Context, namespace string) ([]string, error) {
	var list corev1.ServiceAccountList
	if err := a.core.Get().Namespace(namespace).Resource("serviceaccounts").Do(ctx).Into(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i, item := range list.Items {
		names[i] = item.Name
	}
	return names, nil
}
