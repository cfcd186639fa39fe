package doctor

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/relyingparty"
)

// checkHost sees whether the cluster of the identities trusts their issuer, so that tokens of identities are users there.
func checkHost(ctx context.Context, found *Diagnosis, from *cluster.API, ring *v1alpha1.KeyRing) {
	if ring == nil || ring.Status.Issuer == "" {
		found.skip("host", "the issuer is not known: no KeyRing that you may read names it")
		return
	}
	review := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: relyingparty.UnsignedToken(ring.Status.Issuer)},
	}
	err := from.Create(ctx, cluster.Place{API: "/apis/authentication.k8s.io/v1", Resource: "tokenreviews"}, review, &review)
	if skipped(found, "host", "create tokenreviews", err) {
		return
	}
	switch {
	case err != nil:
		found.skip("host", "review a token of the issuer: %v", err)
	case relyingparty.TrustsIssuer(review.Status.Authenticated, review.Status.Error):
		found.add("host", Warn, "remove the issuer from the AuthenticationConfiguration of the API server, unless that is meant",
			"the cluster trusts %s: users who may create identities and their tokens can become users of the cluster", ring.Status.Issuer)
	default:
		found.pass("host", "the cluster does not take tokens of workload identities for those of its users")
	}
}
