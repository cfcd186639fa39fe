package sdk

import "strings"

// cloud is a target system as one that uses it sets it up.
type cloud struct {
	// name is the type of target system.
	name string
	// sdk is what the container has; empty for the SDK for Go.
	sdk string
	// command runs the container; empty for this program.
	command        []string
	providerConfig string
	audience       string
	// principal is who the credentials are for, or how it begins.
	principal string
	// region is where services are called, empty where the SDK has no setting for it.
	region string
	// cachesToken is true if the SDK reads the token's file again after ten minutes at the earliest.
	cachesToken bool
	// refusals are the codes by which the SDK's error is known; … stands for any text.
	refusals refusals
}

// refusals are the parts of an SDK's errors that name the fault.
type refusals struct {
	audience, subject, expired, unpublished string
	// algorithm is empty where ES256 is accepted.
	algorithm string
}

const (
	awsRole         = "arn:aws:iam::112233445566:role/shop/cart"
	awsRoleOfPython = awsRole + "-python"
	azureTenant     = "44556677-5b6a-4798-8897-a6b5c4d3e2f1"
	azureClient     = "1f2e3d4c-5b6a-4798-8897-a6b5c4d3e2f1"
	googleProvider  = "projects/112233445566/locations/global/workloadIdentityPools/credence/providers/shop"
	googleAccount   = "shop-cart@shop-project.iam.gserviceaccount.com"
	alibabaRole     = "acs:ram::1122334455667788:role/cart"
	alibabaProvider = "acs:ram::1122334455667788:oidc-provider/credence"
)

// everything is the providerConfig with every optional field.
func (c cloud) everything() string {
	optional := map[string]string{
		"aws":      `"roleSessionName":"cart"`,
		"azure":    `"subscriptionID":"8899aabb-5b6a-4798-8897-a6b5c4d3e2f1"`,
		"alicloud": `"roleSessionName":"cart","region":"eu-central-1"`,
	}[c.name]
	if optional == "" {
		return c.providerConfig
	}
	return strings.TrimSuffix(c.providerConfig, "}") + "," + optional + "}"
}

func clouds() []cloud { return append(goClouds(), pythonClouds()...) }

// goClouds are those with the SDKs for Go.
func goClouds() []cloud {
	return []cloud{awsCloud(), azureCloud(), googleCloud(), alibabaCloud()}
}

// String is the name of a test.
func (c cloud) String() string { return strings.TrimSuffix(c.name+" "+c.sdk, " ") }

func awsCloud() cloud {
	return cloud{
		name:           "aws",
		providerConfig: `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"` + awsRole + `","region":"eu-central-1"}`,
		audience:       "sts.amazonaws.com",
		principal:      "arn:aws:sts::112233445566:assumed-role/shop/cart/",
		region:         "eu-central-1",
		refusals: refusals{
			audience: "InvalidIdentityToken: Incorrect token audience", subject: "AccessDenied: Not authorized", expired: "ExpiredTokenException",
			unpublished: "InvalidIdentityToken: Couldn't retrieve verification key",
		},
	}
}

func azureCloud() cloud {
	return cloud{
		name:           "azure",
		providerConfig: `{"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","kind":"Config","clientID":"` + azureClient + `","tenantID":"` + azureTenant + `"}`,
		audience:       "api://AzureADTokenExchange",
		principal:      azureClient,
		cachesToken:    true,
		refusals: refusals{
			audience: "AADSTS700212", subject: "AADSTS700213", expired: "AADSTS700024", unpublished: "AADSTS7000272", algorithm: "AADSTS5002738",
		},
	}
}

func googleCloud() cloud {
	return cloud{
		name: "gcp",
		providerConfig: `{"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"shop-project",` +
			`"workloadIdentityPoolProvider":"` + googleProvider + `","serviceAccount":"` + googleAccount + `"}`,
		audience:  "//iam.googleapis.com/" + googleProvider,
		principal: googleAccount,
		refusals: refusals{
			audience: `"error":"invalid_grant","error_description":"The audience`, subject: "unauthorized_client",
			expired: "ID Token is stale", unpublished: `"error":"invalid_grant","error_description":"Invalid JWT signature`,
		},
	}
}

func alibabaCloud() cloud {
	return cloud{
		name: "alicloud",
		providerConfig: `{"apiVersion":"alicloud.authentication.gardener.cloud/v1alpha1","kind":"Config","roleARN":"` + alibabaRole + `",` +
			`"oidcProviderARN":"` + alibabaProvider + `"}`,
		audience:  "sts.aliyuncs.com",
		principal: alibabaRole,
		refusals: refusals{
			audience: "AuthenticationFail.OIDCToken.AudienceNotMatch", subject: "AuthenticationFail.NoPermission", expired: "AuthenticationFail.OIDCToken.Expired",
			unpublished: "AuthenticationFail.OIDCToken.Invalid", algorithm: "The signature algorithm ES256 is not supported",
		},
	}
}
