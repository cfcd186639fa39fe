package vault

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of the JWT auth method of Vault and OpenBao.
func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("invalid audience (aud) claim", "The role takes other audiences.",
			[]clouderror.Fact{clouderror.Audiences}, []string{"bound_audiences of the role: vault read auth/jwt/role/NAME"},
			"audience claim does not match any bound audience"),
		clouderror.Entry("invalid subject (sub) claim", "The role is bound to another subject.",
			[]clouderror.Fact{clouderror.Subject}, []string{"bound_subject of the role: byte for byte", "an identity that was deleted and made anew has another subject"},
			"sub claim does not match bound subject"),
		clouderror.Entry("invalid issuer (iss) claim", "The auth method is set up for another issuer.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"bound_issuer and oidc_discovery_url: vault read auth/jwt/config; byte for byte"}),
		clouderror.Entry("no known key successfully validated the token signature", "The token's kid is not among the keys that Vault knows.",
			[]clouderror.Fact{clouderror.Keys}, []string{"whether the token's kid is published: credence token verify", "jwt_validation_pubkeys are never fetched anew: use oidc_discovery_url"}),
		clouderror.Entry("error checking oidc discovery URL", "Vault could not fetch the issuer's discovery document.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"whether Vault reaches the issuer: credence relying-party check from there", "oidc_discovery_ca_pem, where its certificate is of an authority of your own"}),
		clouderror.Entry("token is expired (exp)", "The token has expired.",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"whether the token is renewed: credence get", "the clocks"},
			"error validating token: invalid expiration time (exp) claim: token is expired"),
	}
}
