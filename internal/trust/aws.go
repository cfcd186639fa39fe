package trust

import (
	"fmt"
	"regexp"
	"strings"
)

// roleARN has the parts partition, account, path and name (IAM, "IAM identifiers").
var roleARN = regexp.MustCompile(`\A(arn:(aws(?:-[a-z0-9]{1,16}){0,3}):iam::([0-9]{12})):role(/(?:[\w+=,.@-]+/)*)([\w+=,.@-]{1,64})\z`)

type awsTrust struct {
	account, path, role string
	provider            string // its ARN
	policy              object
}

func awsSide(i Identity) (awsTrust, error) {
	parts, err := i.want("iamRoleARN", roleARN, "arn:aws:iam::123456789012:role/my-role")
	if err != nil {
		return awsTrust{}, err
	}
	// IAM names a provider and its condition keys by the issuer without the scheme.
	issuer := strings.TrimPrefix(i.Issuer, "https://")
	side := awsTrust{account: parts[3], path: parts[4], role: parts[5], provider: parts[1] + ":oidc-provider/" + issuer}
	side.policy = awsPolicy(side.provider, issuer, i)
	return side, nil
}

func awsPolicy(provider any, issuer string, i Identity) object {
	audiences := make([]string, len(i.Audiences))
	for n, audience := range i.Audiences {
		audiences[n] = literal(audience)
	}
	return object{
		{"Version", "2012-10-17"},
		{"Statement", []object{{
			{"Effect", "Allow"},
			{"Principal", object{{"Federated", provider}}},
			{"Action", "sts:AssumeRoleWithWebIdentity"},
			{"Condition", object{{"StringEquals", object{{issuer + ":sub", literal(i.Subject)}, {issuer + ":aud", audiences}}}}},
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

func awsCommands(i Identity) (string, error) {
	side, err := awsSide(i)
	if err != nil {
		return "", err
	}
	// Values of options are files to the AWS CLI if they begin with file://. Those of JSON are not.
	provider := document(object{{"Url", i.Issuer}, {"ClientIDList", i.Audiences}})
	return fmt.Sprintf(`# In account %s. Once for all identities of the issuer: where the provider exists, add the audiences to it instead, by
# aws iam add-client-id-to-open-id-connect-provider.
%s
# Where the role exists, give it the same document by aws iam update-assume-role-policy.
%s`, side.account,
		command("aws iam create-open-id-connect-provider", [2]string{"--cli-input-json=", provider}),
		command("aws iam create-role", [2]string{"--role-name=", side.role}, [2]string{"--path=", side.path}, [2]string{"--assume-role-policy-document=", document(side.policy)})), nil
}

func awsTerraform(i Identity) (string, error) {
	side, err := awsSide(i)
	if err != nil {
		return "", err
	}
	name := i.resourceName()
	policy := awsPolicy(reference("aws_iam_openid_connect_provider."+name+".arn"), strings.TrimPrefix(i.Issuer, "https://"), i)
	return fmt.Sprintf("# In account %s. The provider is one for all identities of the issuer.\n", side.account) +
		block("resource", []string{"aws_iam_openid_connect_provider", name}, member{"url", i.Issuer}, member{"client_id_list", i.Audiences}) + "\n" +
		block("resource", []string{"aws_iam_role", name}, member{"name", side.role}, member{"path", side.path}, member{"assume_role_policy", jsonencode(policy)}), nil
}
