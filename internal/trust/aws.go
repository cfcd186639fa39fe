package trust

import (
	"fmt"
	"regexp"
	"strings"
)

// roleARN has the parts before the role, account, path and name (IAM, "IAM identifiers").
var roleARN = regexp.MustCompile(`\A(arn:[^:]+:iam::([^:]*)):role(/(?:.*/)?)([^/]+)\z`)

type awsTrust struct {
	account, path, role string
	provider            string // its ARN
	policy              object
}

func awsSide(i Identity) (awsTrust, error) {
	if endpoint := i.fields()["endpoint"]; endpoint != "" {
		return awsTrust{}, fmt.Errorf("it is for the S3-compatible store at %s, and each kind of store is configured by commands of its own: docs/howto/aws.md has them", endpoint)
	}
	parts, err := i.parts("iamRoleARN", roleARN)
	if err != nil {
		return awsTrust{}, err
	}
	// IAM names a provider and its condition keys by the issuer without the scheme.
	issuer := strings.TrimPrefix(i.Issuer, "https://")
	side := awsTrust{account: parts[2], path: parts[3], role: parts[4], provider: parts[1] + ":oidc-provider/" + issuer}
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

func awsProvider(i Identity) (string, error) {
	side, err := awsSide(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("# In account %s.\n", side.account) +
		block("resource", []string{"aws_iam_openid_connect_provider", i.sharedName(side.account)}, member{"url", i.Issuer}, member{"client_id_list", i.Audiences}), nil
}

func awsTerraform(i Identity) (string, error) {
	side, err := awsSide(i)
	if err != nil {
		return "", err
	}
	name := i.resourceName()
	policy := awsPolicy(reference("data.aws_iam_openid_connect_provider."+name+".arn"), strings.TrimPrefix(i.Issuer, "https://"), i)
	return fmt.Sprintf("# In account %s, where the provider is there already: --provider prints it.\n", side.account) +
		block("data", []string{"aws_iam_openid_connect_provider", name}, member{"url", i.Issuer}) + "\n" +
		block("resource", []string{"aws_iam_role", name}, member{"name", side.role}, member{"path", side.path}, member{"assume_role_policy", jsonencode(policy)}), nil
}
