package aws

import (
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// relation are the parts of an account of AWS that let an identity in.
type relation struct {
	account, path, role string
	provider            string // its ARN
	policy              trust.Object
}

func relationOf(i trust.Identity) (relation, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return relation{}, err
	}
	if c.endpoint != "" {
		return relation{}, fmt.Errorf("it is for the S3-compatible store at %s, and each kind of store is configured by commands of its own: docs/howto/aws.md has them", c.endpoint)
	}
	parts := ofAWS.FindStringSubmatch(c.role)
	_, account, _ := strings.Cut(parts[1], "::")
	// IAM names a provider and its condition keys by the issuer without the scheme.
	issuer := strings.TrimPrefix(i.Issuer, "https://")
	side := relation{account: account, path: parts[2], role: parts[3], provider: parts[1] + ":oidc-provider/" + issuer}
	side.policy = policyOf(side.provider, issuer, i)
	return side, nil
}

func policyOf(provider, issuer string, i trust.Identity) trust.Object {
	audiences := make([]string, len(i.Audiences))
	for n, audience := range i.Audiences {
		audiences[n] = literal(audience)
	}
	return trust.Object{
		{"Version", "2012-10-17"},
		{"Statement", []trust.Object{{
			{"Effect", "Allow"},
			{"Principal", trust.Object{{"Federated", provider}}},
			{"Action", "sts:AssumeRoleWithWebIdentity"},
			{"Condition", trust.Object{{"StringEquals", trust.Object{{issuer + ":sub", literal(i.Subject)}, {issuer + ":aud", audiences}}}}},
		}}},
	}
}

// literal keeps IAM from taking a value for a policy variable, which begins with ${: there, ${$} is a dollar sign (IAM, "IAM
// policy elements: Variables and tags").
func literal(value string) string {
	if !strings.Contains(value, "${") {
		return value
	}
	return strings.ReplaceAll(value, "$", "${$}")
}

func writeCommands(i trust.Identity, side relation) string {
	// Values of options are files to the AWS CLI if they begin with file://. Those of JSON are not.
	provider := trust.Document(trust.Object{{"Url", i.Issuer}, {"ClientIDList", i.Audiences}})
	return fmt.Sprintf(`# In account %s. Once for all identities of the issuer: where the provider exists, add the audiences to it instead, by
# aws iam add-client-id-to-open-id-connect-provider.
%s
# Where the role exists, give it the same document by aws iam update-assume-role-policy.
%s`, side.account,
		trust.Command("aws iam create-open-id-connect-provider", [2]string{"--cli-input-json=", provider}),
		trust.Command("aws iam create-role", [2]string{"--role-name=", side.role}, [2]string{"--path=", side.path}, [2]string{"--assume-role-policy-document=", trust.Document(side.policy)}))
}

func writeProvider(i trust.Identity, side relation) string {
	return fmt.Sprintf("# In account %s, with hashicorp/aws 6 or newer.\n", side.account) +
		trust.Block("resource", []string{"aws_iam_openid_connect_provider", i.SharedName(side.account)}, trust.Member{"url", i.Issuer}, trust.Member{"client_id_list", i.Audiences})
}

func writeTerraform(i trust.Identity, side relation) string {
	return fmt.Sprintf("# In account %s, with hashicorp/aws 6 or newer. The identity provider is there already: --provider prints it.\n", side.account) +
		trust.Block("resource", []string{"aws_iam_role", i.ResourceName()}, trust.Member{"name", side.role}, trust.Member{"path", side.path},
			trust.Member{"assume_role_policy", trust.JSONEncode(side.policy)})
}
