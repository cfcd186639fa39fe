package trust

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	ramRole     = regexp.MustCompile(`\Aacs:ram::([^:]*):role/([^/]+)\z`)
	ramProvider = regexp.MustCompile(`\Aacs:ram::([^:]*):oidc-provider/([^/]+)\z`)
)

type alicloudTrust struct {
	account, role, provider string
	policy                  object
}

func alicloudSide(i Identity) (alicloudTrust, error) {
	role, err := i.parts("roleARN", ramRole)
	if err != nil {
		return alicloudTrust{}, err
	}
	provider, err := i.parts("oidcProviderARN", ramProvider)
	if err != nil {
		return alicloudTrust{}, err
	}
	for _, audience := range i.Audiences {
		if strings.Contains(audience, ",") || strings.Contains(audience, "${") || strings.HasPrefix(audience, "-") {
			return alicloudTrust{}, fmt.Errorf("its audience %q holds a comma or ${, or begins with -: RAM lists client IDs with commas and takes ${ for a variable; choose another audience", audience)
		}
	}
	return alicloudTrust{account: role[1], role: role[2], provider: provider[2], policy: object{
		{"Version", "1"},
		{"Statement", []object{{
			{"Effect", "Allow"},
			{"Action", "sts:AssumeRole"},
			{"Principal", object{{"Federated", []string{provider[0]}}}},
			{"Condition", object{{"StringEquals", object{{"oidc:iss", []string{i.Issuer}}, {"oidc:sub", []string{i.Subject}}, {"oidc:aud", i.Audiences}}}}},
		}}},
	}}, nil
}

func alicloudCommands(i Identity) (string, error) {
	side, err := alicloudSide(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`# In account %s. Once for all identities of the issuer. FINGERPRINT is the SHA-1 of the root certificate of the issuer's
# TLS chain, without colons; tokens older than 12 hours are refused.
%s
%s`, side.account,
		command("aliyun ims CreateOIDCProvider --IssuanceLimitTime 12 --Fingerprints \"$FINGERPRINT\"",
			[2]string{"--OIDCProviderName ", side.provider}, [2]string{"--IssuerUrl ", i.Issuer}, [2]string{"--ClientIds ", strings.Join(i.Audiences, ",")}),
		command("aliyun ram CreateRole", [2]string{"--RoleName ", side.role}, [2]string{"--AssumeRolePolicyDocument ", document(side.policy)})), nil
}

func alicloudProvider(i Identity) (string, error) {
	side, err := alicloudSide(i)
	if err != nil {
		return "", err
	}
	name := i.sharedName(side.account + "\n" + side.provider)
	fingerprint := name + "_fingerprint"
	return fmt.Sprintf("# In account %s. The fingerprint is the SHA-1 of the root certificate of the issuer's TLS chain, without colons.\n", side.account) +
		"variable \"" + fingerprint + "\" {\n  type = string\n}\n\n" +
		block("resource", []string{"alicloud_ims_oidc_provider", name}, member{"oidc_provider_name", side.provider}, member{"issuer_url", i.Issuer},
			member{"client_ids", i.Audiences}, member{"fingerprints", reference("[var." + fingerprint + "]")}, member{"issuance_limit_time", 12}), nil
}

// alicloudTerraform has no data source: the identity itself names the provider.
func alicloudTerraform(i Identity) (string, error) {
	side, err := alicloudSide(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("# In account %s. The provider is a resource of its own: --provider prints it.\n", side.account) +
		block("resource", []string{"alicloud_ram_role", i.resourceName()}, member{"role_name", side.role}, member{"assume_role_policy_document", jsonencode(side.policy)}), nil
}
