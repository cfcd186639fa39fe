package aws

import "github.com/credence-id/credence/internal/clouderror"

// refusals are errors of AWS STS, AssumeRoleWithWebIdentity.
func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("Not authorized to perform sts:AssumeRoleWithWebIdentity", "The role's trust policy does not let this token in, or there is no such role.",
			[]clouderror.Fact{clouderror.Subject, clouderror.Audiences, clouderror.Issuer, clouderror.Config},
			[]string{"the conditions :sub and :aud of the trust policy, whose names begin with the issuer without https://: compare byte for byte", "Principal.Federated: it must be the provider of this issuer in this account", "the role's ARN, and its account", "an identity that was deleted and made anew has another subject"}),
		clouderror.Entry("No OpenIDConnect provider found in your account", "The role's account has no OpenID Connect provider with the token's issuer.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Config}, []string{"aws iam list-open-id-connect-providers in the account of the role", "the provider's URL: byte for byte the issuer, with its path and without a slash at the end unless the issuer has one"}),
		clouderror.Entry("Incorrect token audience", "The provider does not list the token's audience among its client IDs.",
			[]clouderror.Fact{clouderror.Audiences}, []string{"aws iam add-client-id-to-open-id-connect-provider adds it", "or change spec.audiences of the identity, usually sts.amazonaws.com"}),
		clouderror.Entry("Couldn't retrieve verification key from your identity provider", "STS could not fetch the discovery document or the keys, or the token's kid is not among them.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Keys}, []string{"whether the documents can be fetched from the internet within 5 seconds: credence relying-party check", "whether the token's kid is published: credence token verify", "AWS takes no issuer with a port, and at most 100 RSA and 100 EC keys", "a key that was published a moment ago may take minutes until STS knows it"},
			"Could not retrieve verification key"),
		clouderror.Entry("OpenIDConnect provider's HTTPS certificate doesn't match configured thumbprint", "The issuer's TLS certificate is of an authority that AWS does not trust itself, and the provider's thumbprint is of another one.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"aws iam update-open-id-connect-provider-thumbprint, with the SHA-1 of the top certificate of the chain", "better: a certificate of a public authority, for which no thumbprint is needed"}),
		clouderror.Entry("IDPCommunicationError", "STS could not reach the issuer.",
			[]clouderror.Fact{clouderror.Issuer}, []string{"whether the documents can be fetched from the internet within 5 seconds: credence relying-party check", "it may be tried again as it is"}),
		clouderror.Entry("ExpiredTokenException", "The token has expired.",
			[]clouderror.Fact{clouderror.Lifetime}, []string{"whether the token is renewed: credence get", "whether the client reads the file anew for each exchange", "the clocks"},
			"Token expired: current date/time", "ExpiredToken"),
		clouderror.Entry("IDPRejectedClaim", "The issuer's token is refused: a claim is missing, or it is not valid at this time.",
			[]clouderror.Fact{clouderror.Lifetime, clouderror.Issuer}, []string{"iss, sub, aud, iat and exp of the token: credence token inspect", "the clocks"}),
		clouderror.Entry("InvalidIdentityToken", "The token can't be verified: the message has the reason.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Audiences, clouderror.Keys}, []string{"the rest of the message: give it whole to --error", "credence relying-party check with a token finds what STS would refuse"}),
		clouderror.Entry("ValidationError", "A parameter has not the form that STS wants, such as the role's ARN or the session's name.",
			[]clouderror.Fact{clouderror.Config}, []string{"iamRoleARN, and the variables AWS_ROLE_ARN and AWS_ROLE_SESSION_NAME in the container"},
			"Request ARN is invalid"),
		clouderror.Entry("Missing Region", "The SDK has no region, and did not call AWS at all.",
			[]clouderror.Fact{clouderror.Config}, []string{"region in the providerConfig: pods that are created from then on have AWS_REGION and AWS_DEFAULT_REGION", "a container that sets AWS_REGION alone is given neither, and boto3 and version 1 of the AWS CLI read AWS_DEFAULT_REGION"},
			"You must specify a region", "NoRegionError"),
		clouderror.Entry("must match configured OpenID Client ID", "MinIO has the role for another client ID, which is the audience.",
			[]clouderror.Fact{clouderror.Audiences, clouderror.Config}, []string{"client_id of MinIO's OpenID provider: compare byte for byte", "iamRoleARN: it ends with the SHA-1 of the client ID, in base64 for URLs without padding"}),
		clouderror.Entry("Unable to locate credentials", "The SDK found no token and no other credentials: the container was given no identity, or the SDK is older than tokens of this kind.",
			[]clouderror.Fact{clouderror.Config}, clouderror.NotGiven("AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE"),
			"NoCredentialsError", "NoCredentialProviders", "no EC2 IMDS role found", "Unable to load credentials from any of the providers in the chain", "Unable to load AWS credentials from any provider in the chain",
			"Could not load credentials from any providers", "CredentialsProviderError", "Missing credentials in config", "no providers in chain provided credentials", "Failed to resolve AWS credentials",
			"unable to sign request without credentials set", "Error retrieving credentials from the instance profile metadata"),
		clouderror.Entry("Could not connect to the endpoint URL", "The endpoint of AWS in this region can't be reached: there is no such region, or the network does not lead there.",
			[]clouderror.Fact{clouderror.Config}, []string{"region in the providerConfig, and AWS_REGION in the container: aws account list-regions has the codes", "in a network without internet access: an endpoint of sts in the region, and an SDK that calls it (AWS_STS_REGIONAL_ENDPOINTS=regional)", "network policies and proxies of the pod"},
			"EndpointConnectionError", "lookup sts.…no such host", "getaddrinfo ENOTFOUND sts.", "UnknownHostException: sts.", "Failed to resolve 'sts."),
		clouderror.Entry("AccessDenied", "AWS took the token, and the role may not do this.",
			[]clouderror.Fact{clouderror.Config}, []string{"the policies of the role itself, not its trust policy: aws iam list-attached-role-policies and list-role-policies", "the policy of the resource, such as a bucket or a key, and permissions boundaries", "aws sts get-caller-identity in the container: it may be another role"},
			"AccessDeniedException", "is not authorized to perform", "UnauthorizedOperation"),
	}
}
