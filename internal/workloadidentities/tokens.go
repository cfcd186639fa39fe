package workloadidentities

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
)

// Issuer requests tokens, and data of CredentialsBindings.
type Issuer struct{ client client }

// NewIssuer returns an Issuer of the cluster of config.
func NewIssuer(config *rest.Config) (*Issuer, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &Issuer{client}, nil
}

// Token requests a token of the identity with this uid. object is nil for a token without context, duration 0 for the
// server's default. With a binding, it has to refer to the identity. Its errors are those of the API; it makes one request.
func (i *Issuer) Token(ctx context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, duration time.Duration) (identity.Token, error) {
	request := &v1alpha1.TokenRequest{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: v1alpha1.TokenRequestSpec{ContextObject: object}}
	if binding.Name != "" {
		request.Annotations = map[string]string{v1alpha1.AnnotationBinding: binding.String()}
	}
	if duration != 0 {
		request.Spec.Duration = &metav1.Duration{Duration: duration}
	}
	var answer v1alpha1.TokenRequest
	if err := i.client.post(ctx, name, "token", request).Into(&answer); err != nil {
		return identity.Token{}, err
	}
	return identity.NewToken(answer.Status.Token), nil
}

// Data requests the data of the Secret to which the CredentialsBinding with this uid refers. object is nil, or the object that refers to the
// binding. Its errors are those of the API; it makes one request.
func (i *Issuer) Data(ctx context.Context, binding types.NamespacedName, uid types.UID, object *v1alpha1.ContextObject) (map[string][]byte, error) {
	var answer v1alpha1.CredentialsDataRequest
	request := &v1alpha1.CredentialsDataRequest{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: v1alpha1.CredentialsDataRequestSpec{ContextObject: object}}
	err := i.client.postTo(ctx, bindingKind().resource, binding, "data", request).Into(&answer)
	return answer.Status.Data, err
}

// Report sends how tokens of the identity with this uid are delivered. Its errors are those of the API; it is tried once.
func (i *Issuer) Report(ctx context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error {
	return i.client.post(ctx, name, "delivery", &v1alpha1.DeliveryReport{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: report}).Error()
}

// BindingReports sends reports on CredentialsBindings.
type BindingReports struct{ *Issuer }

// Report sends how many Secrets name the binding with this uid. Its errors are those of the API; it is tried once.
func (b BindingReports) Report(ctx context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error {
	return b.client.postTo(ctx, bindingKind().resource, name, "delivery", &v1alpha1.DeliveryReport{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: report}).Error()
}
