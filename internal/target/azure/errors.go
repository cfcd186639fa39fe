package azure

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of Microsoft Entra ID, https://login.microsoftonline.com/error?code=NUMBER.
func refusals() []clouderror.Explanation {
	const exact = "compare byte for byte, upper and lower case and a slash at the end included"
	const young = "a credential that was made a moment ago takes some minutes until every server knows it: try again before anything is changed"
	return []clouderror.Explanation{
		clouderror.Entry("AADSTS70021", "No federated identity credential of this client has the token's issuer, subject and audience.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Subject, clouderror.Audiences, clouderror.Config},
			[]string{"the credential's issuer, subject and audience: " + exact, "the client ID: the credential must be on this application or managed identity", young, "an identity that was deleted and made anew has another subject: make the credential anew"}),
		clouderror.Entry("AADSTS700211", "No federated identity credential of this client has the token's issuer.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Config}, []string{"the credential's issuer: " + exact, young}),
		clouderror.Entry("AADSTS700212", "No federated identity credential of this client has the token's audience.",
			[]clouderror.Fact{clouderror.Audiences, clouderror.Config}, []string{"the credential's audience, which is api://AzureADTokenExchange unless another was set: it must be in spec.audiences", young}),
		clouderror.Entry("AADSTS700213", "No federated identity credential of this client has the token's subject.",
			[]clouderror.Fact{clouderror.Subject, clouderror.Config}, []string{"the credential's subject: " + exact, "an identity that was deleted and made anew has another subject: make the credential anew", young}),
		clouderror.Entry("AADSTS7002138", "The token's subject differs from the federated identity credential's only in upper and lower case.",
			[]clouderror.Fact{clouderror.Subject}, []string{"write the credential's subject exactly as the identity has it"}),
		clouderror.Entry("AADSTS70023", "The issuer, or the lifetime of the token, is not what Entra takes of an external issuer: at most 25 hours from iat to exp.",
			[]clouderror.Fact{clouderror.Lifetime, clouderror.Issuer}, []string{"the token's iat and exp: credence token inspect; request a shorter --duration"}),
		clouderror.Entry("AADSTS700024", "The token is not valid at this time: it has expired, or it is not valid yet.",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"whether the token is renewed: credence get", "whether the client reads the file anew for each exchange, and not once at its start", "the clock of the machine that issued it"}),
		clouderror.Entry("AADSTS700027", "The signature of the token could not be verified with the issuer's published keys.",
			[]clouderror.Fact{clouderror.Keys, clouderror.Issuer}, []string{"whether the token's kid is published: credence token verify", "after a key was revoked: tokens of that key are refused, renew them", "Entra takes RS256 alone"}),
		clouderror.Entry("AADSTS700016", "There is no application with this client ID in this tenant.",
			[]clouderror.Fact{clouderror.Config}, []string{"clientID and tenantID: the client ID is that of the application or managed identity, not its object ID", "the application was made in another tenant, or deleted"}),
		clouderror.Entry("AADSTS90002", "There is no such tenant.",
			[]clouderror.Fact{clouderror.Config}, []string{"tenantID, and whether it is of another cloud (China, US Government) with another authority host"}),
		clouderror.Entry("AADSTS7000215", "The client presented a secret, and not the token.",
			nil, []string{"whether AZURE_CLIENT_SECRET is set in the container: clients prefer it", "which credential the client chooses: it should be the workload identity credential"}),
		clouderror.Entry("AADSTS50027", "The token is not a JSON Web Token, or lacks something that it must have.",
			nil, []string{"whether the file holds the token and nothing else: credence token inspect", "whether another file is mounted in its place"}),
		clouderror.Entry("AADSTS501661", "Entra could not fetch the issuer's documents.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Keys}, []string{"whether they can be fetched from the internet, with a certificate of a public authority: credence relying-party check", "whether the issuer is fast and never throttles: it is fetched from many places; this has been seen to pass by itself"},
			"AADSTS50166", "Request to External OIDC endpoint failed"),
		clouderror.Entry("AADSTS90061", "Entra could not reach the issuer, or something else outside of it.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"whether the issuer's documents can be fetched from the internet: credence relying-party check", "try again: it may pass by itself"}),
		clouderror.Entry("AADSTS53003", "A conditional access policy of the tenant blocks the sign-in.",
			nil, []string{"conditional access for workload identities in the tenant, which may demand known addresses"}),
		clouderror.Entry("DefaultAzureCredential", "The SDK found no token and no other credentials: the container was given no identity.",
			[]clouderror.Fact{clouderror.Config}, clouderror.NotGiven("AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE"),
			"ChainedTokenCredential authentication failed", "WorkloadIdentityCredential: no client ID specified", "WorkloadIdentityCredential authentication unavailable", "ManagedIdentityCredential authentication unavailable"),
		clouderror.Entry("AuthorizationFailed", "Azure took the token, and the application or managed identity may not do this.",
			[]clouderror.Fact{clouderror.Config}, []string{"az role assignment list --assignee CLIENT-ID --all", "a role assignment that was made a moment ago takes some minutes"},
			"does not have authorization to perform action", "AuthorizationPermissionMismatch"),
	}
}
