package workloadidentities

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
)

// SelfTokens requests tokens for pods, as their service accounts. It has no credentials of its own.
type SelfTokens struct{ cluster *rest.Config }

// NewSelfTokens returns the SelfTokens of the cluster of config, whose credentials are not used.
func NewSelfTokens(config *rest.Config) *SelfTokens {
	cluster := rest.AnonymousClientConfig(config)
	// The volumes that wait, each with one request, bound the number of requests.
	cluster.QPS = -1
	return &SelfTokens{cluster}
}

// Token requests a token of an identity with the service-account token of a pod. Its errors are those of the API; it makes one request.
func (s *SelfTokens) Token(ctx context.Context, name types.NamespacedName, pod identity.Token) (v1alpha1.TokenRequestStatus, error) {
	config := rest.CopyConfig(s.cluster)
	config.BearerToken = pod.Reveal()
	client, err := newClient(config)
	if err != nil {
		return v1alpha1.TokenRequestStatus{}, err
	}
	var answer v1alpha1.TokenRequest
	err = client.post(ctx, name, "selftoken", &v1alpha1.TokenRequest{}).Into(&answer)
	return answer.Status, err
}
