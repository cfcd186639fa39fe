package clouderror

// gcp are errors of Google's Security Token Service and IAM Credentials.
func gcp() []Explanation {
	return []Explanation{
		entry("gcp", "Error connecting to the given credential's issuer", "Google could not fetch the issuer's documents.",
			[]Fact{Issuer, Keys}, []string{"whether they can be fetched from the internet, with a certificate of a public authority: credence relying-party check", "or upload the key set to the provider: gcloud iam workload-identity-pools providers update-oidc --jwk-json-path; then it must be uploaded anew before each rotation"}),
		entry("gcp", "The issuer in ID Token … does not match", "The provider of the pool has another issuer.",
			[]Fact{Issuer, Config}, []string{"the provider's issuer URI: byte for byte the identity's issuer", "workloadIdentityPoolProvider: it may name another provider"}),
		entry("gcp", "The audience in ID Token … does not match", "The provider does not take the token's audience.",
			[]Fact{Audiences, Config}, []string{"the provider's allowed audiences; without any, it takes its own full name alone, //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, also with https:", "NUMBER is the number of the project, not its ID"}),
		entry("gcp", "is stale to sign-in", "The token is too old, has expired, or is valid for 48 hours or more.",
			[]Fact{Lifetime}, []string{"whether the token is renewed: credence get", "the token's iat and exp: credence token inspect", "the clocks"}),
		entry("gcp", "The size of mapped attribute google.subject exceeds", "The subject is longer than the 127 bytes that Google takes.",
			[]Fact{Subject}, []string{"choose a shorter name or namespace for the identity", "or map google.subject to a shorter claim, and mind that no two identities share it"}),
		entry("gcp", "The given credential is rejected by the attribute condition", "The provider's attribute condition does not hold for the token.",
			[]Fact{Subject}, []string{"the provider's attribute condition: gcloud iam workload-identity-pools providers describe"}),
		entry("gcp", "Input JWK is not in a valid json format", "Google could not read a key set, the uploaded one or the issuer's.",
			[]Fact{Keys, Issuer}, []string{"whether an issuer with a self-signed certificate was meant: that is not taken, upload the key set", "an uploaded key may have only kty, alg, use, kid, n, e, x, y and crv: credence discovery export writes it so"}),
		entry("gcp", "invalid_target", "There is no such pool or provider, or it is disabled or deleted.",
			[]Fact{Config}, []string{"workloadIdentityPoolProvider: the number of the project, pool and provider", "gcloud iam workload-identity-pools providers describe: its state"},
			"The target service indicated by the \"audience\" parameters is invalid"),
		entry("gcp", "iam.serviceAccounts.getAccessToken", "The identity may not impersonate the service account.",
			[]Fact{Subject, Config}, []string{"the binding of roles/iam.workloadIdentityUser on the service account: its member names the subject exactly, credence trust gcp prints it", "serviceAccount: its name and project", "a binding that was made a moment ago takes minutes to be known"}),
		entry("gcp", "No matching signing key", "The token's kid is not among the keys that Google knows of the issuer.",
			[]Fact{Keys}, []string{"whether the token's kid is published: credence token verify", "whether the key set was uploaded: then upload it anew"},
			"Invalid ID Token signature", "Failed to verify … signature"),
		entry("gcp", "invalid_grant", "The token is not accepted: the rest of the message has the reason.",
			[]Fact{Issuer, Audiences, Lifetime}, []string{"the field error_description: give it whole to --error"}),
	}
}
