package gcp

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of Google's Security Token Service and IAM Credentials.
func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("Error connecting to the given credential's issuer", "Google could not fetch the issuer's documents.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Keys}, []string{"whether they can be fetched from the internet, with a certificate of a public authority: credence relying-party check", "or upload the key set to the provider: gcloud iam workload-identity-pools providers update-oidc --jwk-json-path; then it must be uploaded anew before each rotation"}),
		clouderror.Entry("The issuer in ID Token … does not match", "The provider of the pool has another issuer.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Config}, []string{"the provider's issuer URI: byte for byte the identity's issuer", "workloadIdentityPoolProvider: it may name another provider"}),
		clouderror.Entry("The audience in ID Token … does not match", "The provider does not take the token's audience.",
			[]clouderror.Fact{clouderror.Audiences, clouderror.Config}, []string{"the provider's allowed audiences; without any, it takes its own full name alone, //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, also with https:", "NUMBER is the number of the project, not its ID"}),
		clouderror.Entry("is stale to sign-in", "The token is too old, has expired, or is valid for 48 hours or more.",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"whether the token is renewed: credence get", "the token's iat and exp: credence token inspect", "the clocks"}),
		clouderror.Entry("The size of mapped attribute google.subject exceeds", "The subject is longer than the 127 bytes that Google takes.",
			[]clouderror.Fact{clouderror.Subject}, []string{"choose a shorter name or namespace for the identity", "or map google.subject to a shorter claim, and mind that no two identities share it"}),
		clouderror.Entry("The given credential is rejected by the attribute condition", "The provider's attribute condition does not hold for the token.",
			[]clouderror.Fact{clouderror.Subject}, []string{"the provider's attribute condition: gcloud iam workload-identity-pools providers describe"}),
		clouderror.Entry("Input JWK is not in a valid json format", "Google could not read a key set, the uploaded one or the issuer's.",
			[]clouderror.Fact{clouderror.Keys, clouderror.Issuer}, []string{"whether an issuer with a self-signed certificate was meant: that is not taken, upload the key set", "an uploaded key may have only kty, alg, use, kid, n, e, x, y and crv: credence discovery export writes it so"}),
		clouderror.Entry("invalid_target", "There is no such pool or provider, or it is disabled or deleted.",
			[]clouderror.Fact{clouderror.Config}, []string{"workloadIdentityPoolProvider: the number of the project, pool and provider", "gcloud iam workload-identity-pools providers describe: its state"},
			"The target service indicated by the \"audience\" parameters is invalid"),
		clouderror.Entry("iam.serviceAccounts.getAccessToken", "The identity may not impersonate the service account.",
			[]clouderror.Fact{clouderror.Subject, clouderror.Config}, []string{"the binding of roles/iam.workloadIdentityUser on the service account: its member names the subject exactly, credence trust gcp prints it", "serviceAccount: its name and project", "a binding that was made a moment ago takes minutes to be known"}),
		clouderror.Entry("No matching signing key", "The token's kid is not among the keys that Google knows of the issuer.",
			[]clouderror.Fact{clouderror.Keys}, []string{"whether the token's kid is published: credence token verify", "whether the key set was uploaded: then upload it anew"},
			"Invalid ID Token signature", "Failed to verify … signature"),
		clouderror.Entry("invalid_grant", "The token is not accepted: the rest of the message has the reason.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Audiences, clouderror.Lifetime}, []string{"the field error_description: give it whole to --error"}),
		clouderror.Entry("could not find default credentials", "The SDK found no token and no other credentials: the container was given no identity.",
			[]clouderror.Fact{clouderror.Config}, clouderror.NotGiven("GOOGLE_APPLICATION_CREDENTIALS"),
			"Could not automatically determine credentials", "default credentials were not found", "Application Default Credentials are not available", "Could not load the default credentials", "You do not currently have an active account selected"),
		clouderror.Entry("PERMISSION_DENIED", "Google took the token, and the principal may not do this.",
			[]clouderror.Fact{clouderror.Subject, clouderror.Config}, []string{"the roles of the service account that is impersonated, or of the principal:// of the identity: gcloud projects get-iam-policy", "whether the API is enabled in the project"},
			"does not have storage.…access", "does not have permission to access"),
	}
}
