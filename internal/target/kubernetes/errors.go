package kubernetes

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of kube-apiserver's JWT authenticators. Clients see only that they are not authorized; the rest is in
// its log.
func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("oidc: expected audience", "The token is for other audiences than the cluster's authentication configuration lists.",
			[]clouderror.Fact{clouderror.Audiences}, []string{"jwt[].issuer.audiences of the file of --authentication-config"}),
		clouderror.Entry("id token issued by a different provider", "The issuer of the authentication configuration is not the token's.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"jwt[].issuer.url: byte for byte"}),
		clouderror.Entry("failed to verify signature", "The token's kid is not among the keys that kube-apiserver knows of the issuer.",
			[]clouderror.Fact{clouderror.Keys, clouderror.Issuer}, []string{"whether the token's kid is published: credence token verify", "up to 1.36 kube-apiserver fetches new keys only once the max-age of the old ones is over", "whether kube-apiserver reaches the issuer: its log"},
			"failed to verify id token signature"),
		clouderror.Entry("oidc: authenticator not initialized", "kube-apiserver has not been able to fetch the issuer's documents yet.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"whether kube-apiserver reaches the issuer, and trusts its certificate: issuer.certificateAuthority", "it tries again every 10 seconds"}),
		clouderror.Entry("oidc: token is expired", "The token has expired.",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"whether the token is renewed: credence get", "the clocks"}),
		clouderror.Entry("You must be logged in to the server", "The cluster knows no user for the token. The reason is in kube-apiserver's log.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Audiences, clouderror.Lifetime}, []string{"the log of kube-apiserver: give its line to --error", "whether this cluster has an authentication configuration with the issuer: credence trust kubernetes prints it"}),
	}
}
