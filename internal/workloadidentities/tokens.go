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

// Issuer requests tokens.
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
// server's default. Its errors are those of the API; it makes one request.
func (i *Issuer) Token(ctx context.Context, name types.NamespacedName, uid types.UID, object *v1alpha1.ContextObject, duration time.Duration) (identity.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := &v1alpha1.TokenRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		ObjectMeta: metav1.ObjectMeta{UID: uid},
		Spec:       v1alpha1.TokenRequestSpec{ContextObject: object},
	}
	if duration != 0 {
		request.Spec.Duration = &metav1.Duration{Duration: duration}
	}
	var answer v1alpha1.TokenRequest
	err := i.client.rest.Post().MaxRetries(0).Namespace(name.Namespace).Resource(resource).Name(name.Name).SubResource("token").Body(request).Do(ctx).Into(&answer)
	if err != nil {
		return identity.Token{}, err
	}
	return identity.NewToken(answer.Status.Token), nil
}

// Report sends how tokens of the identity with this uid are delivered. Its errors are those of the API; it is tried once.
func (i *Issuer) Report(ctx context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return i.client.rest.Post().MaxRetries(0).Namespace(name.Namespace).Resource(resource).Name(name.Name).SubResource("delivery").Body(&v1alpha1.DeliveryReport{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DeliveryReport"},
		ObjectMeta: metav1.ObjectMeta{UID: uid},
		Spec:       report,
	}).Do(ctx).Error()
}
