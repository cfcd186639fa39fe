package clouderror

// alicloud are errors of Alibaba Cloud STS, AssumeRoleWithOIDC.
func alicloud() []Explanation {
	return []Explanation{
		entry("alicloud", "AuthenticationFail.OIDCToken.Invalid", "The token could not be verified: its signature, issuer or audience is not that of the identity provider.",
			[]Fact{Issuer, Audiences, Keys}, []string{"the provider's issuer URL and client IDs: byte for byte", "the provider's fingerprints: the SHA-1 of the root certificate of the issuer's TLS chain, which may have changed", "whether the token's kid is published: credence token verify; RAM takes RS256 alone"},
			"OIDCToken.Invalid"),
		entry("alicloud", "AuthenticationFail.OIDCToken.Expired", "The token has expired, or was issued longer ago than the provider allows (12 hours, unless another limit was set).",
			[]Fact{Lifetime}, []string{"the provider's IssuanceLimitTime, 1 to 168 hours: tokens must be renewed before that", "whether the token is renewed: credence get", "the clocks"},
			"OIDCToken.Expired"),
		entry("alicloud", "AuthenticationFail.NoPermission", "The role's trust policy does not let this token in.",
			[]Fact{Subject, Audiences, Issuer, Config}, []string{"the conditions oidc:iss, oidc:aud and oidc:sub of the trust policy: byte for byte", "Principal.Federated: it must name the provider"}),
		entry("alicloud", "EntityNotExist.Role", "There is no such role.",
			[]Fact{Config}, []string{"roleARN: its account and name"}),
	}
}

// kubernetes are errors of kube-apiserver's JWT authenticators. Clients see only that they are not authorized; the rest is in
// its log.
func kubernetes() []Explanation {
	return []Explanation{
		entry("kubernetes", "oidc: expected audience", "The token is for other audiences than the cluster's authentication configuration lists.",
			[]Fact{Audiences}, []string{"jwt[].issuer.audiences of the file of --authentication-config"}),
		entry("kubernetes", "id token issued by a different provider", "The issuer of the authentication configuration is not the token's.",
			[]Fact{Issuer}, []string{"jwt[].issuer.url: byte for byte"}),
		entry("kubernetes", "failed to verify signature", "The token's kid is not among the keys that kube-apiserver knows of the issuer.",
			[]Fact{Keys, Issuer}, []string{"whether the token's kid is published: credence token verify", "up to 1.36 kube-apiserver fetches new keys only once the max-age of the old ones is over", "whether kube-apiserver reaches the issuer: its log"},
			"failed to verify id token signature"),
		entry("kubernetes", "oidc: authenticator not initialized", "kube-apiserver has not been able to fetch the issuer's documents yet.",
			[]Fact{Issuer}, []string{"whether kube-apiserver reaches the issuer, and trusts its certificate: issuer.certificateAuthority", "it tries again every 10 seconds"}),
		entry("kubernetes", "oidc: token is expired", "The token has expired.",
			[]Fact{Lifetime}, []string{"whether the token is renewed: credence get", "the clocks"}),
		entry("kubernetes", "You must be logged in to the server", "The cluster knows no user for the token. The reason is in kube-apiserver's log.",
			[]Fact{Issuer, Audiences, Lifetime}, []string{"the log of kube-apiserver: give its line to --error", "whether this cluster has an authentication configuration with the issuer: credence trust kubernetes prints it"}),
	}
}

// vault are errors of the JWT auth method of Vault and OpenBao.
func vault() []Explanation {
	return []Explanation{
		entry("vault", "invalid audience (aud) claim", "The role takes other audiences.",
			[]Fact{Audiences}, []string{"bound_audiences of the role: vault read auth/jwt/role/NAME"},
			"audience claim does not match any bound audience"),
		entry("vault", "invalid subject (sub) claim", "The role is bound to another subject.",
			[]Fact{Subject}, []string{"bound_subject of the role: byte for byte", "an identity that was deleted and made anew has another subject"},
			"sub claim does not match bound subject"),
		entry("vault", "invalid issuer (iss) claim", "The auth method is set up for another issuer.",
			[]Fact{Issuer}, []string{"bound_issuer and oidc_discovery_url: vault read auth/jwt/config; byte for byte"}),
		entry("vault", "no known key successfully validated the token signature", "The token's kid is not among the keys that Vault knows.",
			[]Fact{Keys}, []string{"whether the token's kid is published: credence token verify", "jwt_validation_pubkeys are never fetched anew: use oidc_discovery_url"}),
		entry("vault", "error checking oidc discovery URL", "Vault could not fetch the issuer's discovery document.",
			[]Fact{Issuer}, []string{"whether Vault reaches the issuer: credence relying-party check from there", "oidc_discovery_ca_pem, where its certificate is of an authority of your own"}),
		entry("vault", "token is expired (exp)", "The token has expired.",
			[]Fact{Lifetime}, []string{"whether the token is renewed: credence get", "the clocks"},
			"error validating token: invalid expiration time (exp) claim: token is expired"),
	}
}
