package targets_test

import (
	"os"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"AADSTS70021": "AADSTS70021",
		`"error_description":"AADSTS70021: No matching federated identity record found for presented assertion. Assertion Issuer: 'https://x'."`: "AADSTS70021",
		"AADSTS700213: No matching federated identity record found for presented assertion subject 'x'":                                          "AADSTS700213",
		"aadsts7002138": "AADSTS7002138",
		"An error occurred (InvalidIdentityToken) when calling the AssumeRoleWithWebIdentity operation: No OpenIDConnect provider found in your account for https://x":              "No OpenIDConnect provider found in your account",
		"An error occurred (AccessDenied) when calling the AssumeRoleWithWebIdentity operation: Not authorized to perform\n  sts:AssumeRoleWithWebIdentity":                         "Not authorized to perform sts:AssumeRoleWithWebIdentity",
		"api error InvalidIdentityToken: Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements": "Couldn't retrieve verification key from your identity provider",
		`oauth2/google: status code 400: {"error":"invalid_grant","error_description":"The audience in ID Token [x] does not match the expected audience."}`:                        "The audience in ID Token … does not match",
		`{"error":"invalid_target","error_description":"The target service indicated by the \"audience\" parameters is invalid."}`:                                                  "invalid_target",
		"botocore.exceptions.NoRegionError: You must specify a region.":                                                                                                             "Missing Region",
		"api error InvalidParameterValue: STS JWT Token has `azp` claim invalid, `azp` must match configured OpenID Client ID":                                                      "must match configured OpenID Client ID",
		"Code: AuthenticationFail.OIDCToken.Expired Message: x":                                                                                                                     "AuthenticationFail.OIDCToken.Expired",
		"error validating token: invalid audience (aud) claim: audience claim does not match any bound audience":                                                                    "invalid audience (aud) claim",
		// Messages of SDKs in a container that was given nothing.
		"botocore.exceptions.NoCredentialsError: Unable to locate credentials":                                                                                                                 "Unable to locate credentials",
		"Unable to locate credentials. You can configure credentials by running \"aws configure\".":                                                                                            "Unable to locate credentials",
		"NoCredentialProviders: no valid providers in chain. Deprecated.":                                                                                                                      "Unable to locate credentials",
		"operation error S3: ListBuckets, get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found, operation error ec2imds: GetMetadata, request canceled": "Unable to locate credentials",
		"software.amazon.awssdk.core.exception.SdkClientException: Unable to load credentials from any of the providers in the chain AwsCredentialsProviderChain(":                             "Unable to locate credentials",
		"CredentialsProviderError: Could not load credentials from any providers":                                                                                                              "Unable to locate credentials",
		"DefaultAzureCredential failed to retrieve a token from the included credentials.\nAttempted credentials:\n\tEnvironmentCredential: EnvironmentCredential authentication unavailable.": "DefaultAzureCredential",
		"DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n\tEnvironmentCredential: missing environment variable AZURE_TENANT_ID":                                    "DefaultAzureCredential",
		"google: could not find default credentials. See https://cloud.google.com/docs/authentication/external/set-up-adc for more information":                                                "could not find default credentials",
		"google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found. To set up Application Default Credentials, see x":                                            "could not find default credentials",
		`dial tcp 169.254.169.254:80: connect: connection refused`:                                                                                                                             "instance metadata service",
		`Get "http://169.254.169.254/latest/api/token": context deadline exceeded`:                                                                                                             "instance metadata service",
		// Messages of a wrong network or region.
		`botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://sts.eu-centrl-1.amazonaws.com/"`: "Could not connect to the endpoint URL",
		`Post "https://sts.eu-centrl-1.amazonaws.com/": dial tcp: lookup sts.eu-centrl-1.amazonaws.com on 10.0.0.10:53: no such host`:  "Could not connect to the endpoint URL",
		`Post "https://vault.example": dial tcp: lookup vault.example on 10.0.0.10:53: no such host`:                                   "no such host",
		`tls: failed to verify certificate: x509: certificate signed by unknown authority`:                                             "certificate signed by unknown authority",
		// The token was taken, and something else is not allowed.
		"An error occurred (AccessDenied) when calling the GetObject operation: Access Denied":                          "AccessDenied",
		"User: arn:aws:sts::112233445566:assumed-role/cart/s is not authorized to perform: s3:GetObject on resource: x": "AccessDenied",
		"ERROR CODE: AuthorizationFailed":                                          "AuthorizationFailed",
		"rpc error: code = PermissionDenied desc = 403, status: PERMISSION_DENIED": "PERMISSION_DENIED",
		"error: You must be logged in to the server (Unauthorized)":                "You must be logged in to the server",
	} {
		got := targets.Explain(text, "")
		if len(got) == 0 || got[0].Code != want {
			t.Errorf("%q is explained as %v, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "AADSTS700219", "AADSTS7002", "xAADSTS70021", "everything is well", strings.Repeat("x", 1<<20) + "AADSTS70021"} {
		if got := targets.Explain(text, ""); len(got) > 0 {
			t.Errorf("%q is explained as %v", text, got[0].Code)
		}
	}
	if got := targets.Explain("invalid_grant AADSTS70021", "azure"); len(got) != 1 || got[0].System != "azure" {
		t.Errorf("errors of others: %v", got)
	}
}

func TestEveryErrorIsFoundByItsNameAndIsInTheReference(t *testing.T) {
	reference := testkit.Need(os.ReadFile("../../docs/reference/cloud-errors.md"))(t)
	for _, e := range targets.Errors("") {
		if got := targets.Explain(e.Code, e.System); len(got) == 0 || got[0].Code != e.Code {
			t.Errorf("%s is not found by its name: %v", e.Code, got)
		}
		if !strings.Contains(string(reference), "| `"+e.Code+"` | "+e.Cause+" |") {
			t.Errorf("the reference lacks: | `%s` | %s |", e.Code, e.Cause)
		}
	}
}

func FuzzExplain(f *testing.F) {
	for _, e := range targets.Errors("") {
		f.Add(e.Code)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range targets.Explain(text, "") {
			if len(targets.Explain(text, e.System)) == 0 {
				t.Errorf("%s is found, but not as an error of %s", e.Code, e.System)
			}
		}
	})
}
