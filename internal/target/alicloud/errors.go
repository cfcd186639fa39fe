package alicloud

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of Alibaba Cloud STS, AssumeRoleWithOIDC.
func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("AuthenticationFail.OIDCToken.Invalid", "The token could not be verified: its signature, issuer or audience is not that of the identity provider.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Audiences, clouderror.Keys}, []string{"the provider's issuer URL and client IDs: byte for byte", "the provider's fingerprints: the SHA-1 of the root certificate of the issuer's TLS chain, which may have changed", "whether the token's kid is published: credence token verify; RAM takes RS256 alone"},
			"OIDCToken.Invalid"),
		clouderror.Entry("AuthenticationFail.OIDCToken.Expired", "The token has expired, or was issued longer ago than the provider allows (12 hours, unless another limit was set).",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"the provider's IssuanceLimitTime, 1 to 168 hours: tokens must be renewed before that", "whether the token is renewed: credence get", "the clocks"},
			"OIDCToken.Expired"),
		clouderror.Entry("AuthenticationFail.NoPermission", "The role's trust policy does not let this token in.",
			[]clouderror.Fact{clouderror.Subject, clouderror.Audiences, clouderror.Issuer, clouderror.Config}, []string{"the conditions oidc:iss, oidc:aud and oidc:sub of the trust policy: byte for byte", "Principal.Federated: it must name the provider"}),
		clouderror.Entry("EntityNotExist.Role", "There is no such role.",
			[]clouderror.Fact{clouderror.Config}, []string{"roleARN: its account and name"}),
	}
}
