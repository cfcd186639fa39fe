package targets

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

func TestDeclare(t *testing.T) {
	const provider = "projects/112233445566/locations/global/workloadIdentityPools/gardener-pool/providers/shop"
	for short, want := range map[string]string{
		"aws:arn:aws:iam::123456789012:role/cart":                                                  `aws {"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","iamRoleARN":"arn:aws:iam::123456789012:role/cart","kind":"Config"} sts.amazonaws.com`,
		"aws:arn:aws:iam::123456789012:role/a,b,region=eu-central-1":                               `aws {"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","iamRoleARN":"arn:aws:iam::123456789012:role/a,b","kind":"Config","region":"eu-central-1"} sts.amazonaws.com`,
		"gcp:" + provider + ",projectID=my-project":                                                `gcp {"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"my-project","workloadIdentityPoolProvider":"` + provider + `"} //iam.googleapis.com/` + provider,
		"azure:0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21,tenantID=aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910": `azure {"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","clientID":"0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21","kind":"Config","tenantID":"aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910"} api://AzureADTokenExchange`,
		"kubernetes": "kubernetes  ", "generic": "generic  ",
		"kubernetes:https://api.example.com": `kubernetes {"apiVersion":"kubernetes.authentication.gardener.cloud/v1alpha1","kind":"Config","server":"https://api.example.com"} `,
	} {
		got, err := Declare(short)
		if text := got.Type + " " + string(got.ProviderConfig) + " " + strings.Join(got.Audiences, " "); err != nil || text != want {
			t.Errorf("%s: %v\n%s\n%s", short, err, text, want)
		}
	}
	for short, want := range map[string]string{
		"":                 "one of " + strings.Join(Types(), ", "),
		"gce:x":            `"gce" is not a type of target system`,
		"vault:x":          `"vault" is not a type`,
		"aws":              "needs one",
		"aws:cart":         "spec.targetSystem.providerConfig.iamRoleARN",
		"aws:a,iamRoleARN": "spec.targetSystem.providerConfig.iamRoleARN",
		"generic:x":        "write generic alone",
	} {
		if _, err := Declare(short); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", short, err, want)
		}
	}
}

// A type whose fields are checked has a short form.
func TestEveryTypeHasAShortForm(t *testing.T) {
	for _, system := range systems {
		if system.Adapter != nil && system.Name != "generic" && len(system.Short.Fields) == 0 {
			t.Errorf("%s has no short form", system.Name)
		}
	}
}

// The document has the forms as the help does, with what is required outside of brackets.
func TestShorts(t *testing.T) {
	forms := Shorts()
	if want := []string{
		"alicloud:ROLEARN,oidcProviderARN=…[,roleSessionName=…][,region=…]",
		"aws:IAMROLEARN[,roleSessionName=…][,region=…][,endpoint=…]",
		"azure:CLIENTID,tenantID=…[,subscriptionID=…]",
		"gcp:WORKLOADIDENTITYPOOLPROVIDER,projectID=…[,serviceAccount=…]",
		"generic",
		"kubernetes[:SERVER[,certificateAuthorityData=…][,namespace=…]]",
	}; !slices.Equal(forms, want) {
		t.Errorf("%q", forms)
	}
	document := testkit.Need(os.ReadFile("../../docs/reference/command-line.md"))(t)
	for _, form := range forms {
		if !strings.Contains(string(document), "| `"+form+"` |") {
			t.Errorf("docs/reference/command-line.md lacks %s", form)
		}
	}
}
