package kubeapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
)

type tokens struct{ *client }

// UID implements workloadidentity.API.
func (c tokens) UID(ctx context.Context, namespace string, object workloadidentity.Object) (string, error) {
	var found metav1.PartialObjectMetadata
	err := c.core.Get().MaxRetries(0).Namespace(namespace).Resource(object.Resource).Name(object.Name).Do(ctx).Into(&found)
	return string(found.UID), c.classified(err, rights{verb: "get", resource: object.Resource, namespace: namespace})
}

// CreateToken implements workloadidentity.API.
func (c tokens) CreateToken(ctx context.Context, namespace, name string, wanted workloadidentity.TokenRequest) (workloadidentity.Token, error) {
	request := v1alpha1.TokenRequest{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"}}
	if wanted.Duration > 0 {
		request.Spec.Duration = &metav1.Duration{Duration: wanted.Duration}
	}
	if o := wanted.Object; o != nil {
		request.Spec.ContextObject = &v1alpha1.ContextObject{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: namespace, UID: types.UID(wanted.UID)}
	}
	var answer v1alpha1.TokenRequest
	// The client would repeat the request on 503 until its time is over, and the user would not see why there is no token.
	err := c.tokens.Post().MaxRetries(0).Namespace(namespace).Resource("workloadidentities").Name(name).SubResource("token").
		Body(&request).Do(ctx).Into(&answer)
	if err != nil {
		return workloadidentity.Token{}, c.classified(err, rights{verb: "create", resource: "workloadidentities", subresource: "token", group: v1alpha1.GroupName, namespace: namespace})
	}
	return workloadidentity.Token{Token: credential.NewSecret(answer.Status.Token), Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
