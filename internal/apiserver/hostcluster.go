package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	restclient "k8s.io/client-go/rest"
)

// CheckHostCluster makes sure that the cluster which hosts this server would not accept its tokens as those of service
// accounts: neither the issuer nor a key may be the cluster's own. A cluster that does not publish its issuer and keys
// is an error too.
func CheckHostCluster(ctx context.Context, client restclient.Interface, issuer identity.Issuer, keys []identity.PublicKey) error {
	const hint = "grant this server the ClusterRole system:service-account-issuer-discovery and make sure that the API server is reachable"
	var configuration struct {
		Issuer string `json:"issuer"`
	}
	if err := fetch(ctx, client, "/.well-known/openid-configuration", &configuration); err != nil {
		return fmt.Errorf("find the issuer of the cluster's service accounts: %w; %s", err, hint)
	}
	if configuration.Issuer == "" {
		return fmt.Errorf("the cluster does not publish the issuer of its service accounts: %s", hint)
	}
	if configuration.Issuer == string(issuer) {
		return fmt.Errorf("issuer %q is the issuer of the cluster's service accounts: workload identities need an issuer of their own, set another --issuer", issuer)
	}
	var set jose.JSONWebKeySet
	if err := fetch(ctx, client, "/openid/v1/jwks", &set); err != nil {
		return fmt.Errorf("find the keys of the cluster's service accounts: %w; %s", err, hint)
	}
	if len(set.Keys) == 0 {
		return fmt.Errorf("the cluster does not publish the keys of its service accounts: %s", hint)
	}
	own := map[identity.KeyID]bool{}
	for _, key := range keys {
		own[key.ID] = true
	}
	for _, key := range set.Keys {
		// Compared by what the key is: the kid that the cluster gives it may be any name.
		if id, err := identity.KeyIDOf(key.Key); err == nil && own[id] {
			return fmt.Errorf("signing key %s is a key of the cluster's service accounts: workload identities need keys of their own", id)
		}
	}
	return nil
}

// HostTrusts reports whether the cluster which hosts this server accepts tokens of the issuer as those of its users, as an
// AuthenticationConfiguration of its API server may have it: then the creator of an identity can be such a user.
func HostTrusts(ctx context.Context, client authenticationv1client.TokenReviewInterface, issuer identity.Issuer) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: relyingparty.UnsignedToken(string(issuer))}}
	answer, err := client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review a token of the issuer: %w", err)
	}
	return relyingparty.TrustsIssuer(answer.Status.Authenticated, answer.Status.Error), nil
}

func fetch(ctx context.Context, client restclient.Interface, path string, into any) error {
	body, err := client.Get().AbsPath(path).SetHeader("Accept", "application/jwk-set+json, application/json").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
