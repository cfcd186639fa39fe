package alicloud

import (
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// relation are the parts of an account of Alibaba Cloud that let an identity in.
type relation struct {
	account, role, provider string
	policy                  trust.Object
}

func relationOf(i trust.Identity) (relation, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return relation{}, err
	}
	account, role, _ := strings.Cut(strings.TrimPrefix(c.role, "acs:ram::"), ":role/")
	_, provider, _ := strings.Cut(c.provider, ":oidc-provider/")
	for _, audience := range i.Audiences {
		if wrong := untrusted(audience); wrong != "" {
			return relation{}, fmt.Errorf("its audience %q %s", audience, wrong)
		}
	}
	return relation{account: account, role: role, provider: provider, policy: trust.Object{
		{"Version", "1"},
		{"Statement", []trust.Object{{
			{"Effect", "Allow"},
			{"Action", "sts:AssumeRole"},
			{"Principal", trust.Object{{"Federated", []string{c.provider}}}},
			{"Condition", trust.Object{{"StringEquals", trust.Object{{"oidc:iss", []string{i.Issuer}}, {"oidc:sub", []string{i.Subject}}, {"oidc:aud", i.Audiences}}}}},
		}}},
	}}, nil
}

func writeCommands(i trust.Identity, side relation) string {
	return fmt.Sprintf(`# In account %s. Once for all identities of the issuer. FINGERPRINT is the SHA-1 of the root certificate of the issuer's
# TLS chain, without colons; tokens older than 12 hours are refused.
%s
%s`, side.account,
		trust.Command("aliyun ims CreateOIDCProvider --IssuanceLimitTime 12 --Fingerprints \"$FINGERPRINT\"",
			[2]string{"--OIDCProviderName ", side.provider}, [2]string{"--IssuerUrl ", i.Issuer}, [2]string{"--ClientIds ", strings.Join(i.Audiences, ",")}),
		trust.Command("aliyun ram CreateRole", [2]string{"--RoleName ", side.role}, [2]string{"--AssumeRolePolicyDocument ", trust.Document(side.policy)}))
}

func writeProvider(i trust.Identity, side relation) string {
	name := i.SharedName(side.account + "\n" + side.provider)
	fingerprint := name + "_fingerprint"
	return fmt.Sprintf("# In account %s. The fingerprint is the SHA-1 of the root certificate of the issuer's TLS chain, without colons.\n", side.account) +
		"variable \"" + fingerprint + "\" {\n  type = string\n}\n\n" +
		trust.Block("resource", []string{"alicloud_ims_oidc_provider", name}, trust.Member{"oidc_provider_name", side.provider}, trust.Member{"issuer_url", i.Issuer},
			trust.Member{"client_ids", i.Audiences}, trust.Member{"fingerprints", trust.Reference("[var." + fingerprint + "]")}, trust.Member{"issuance_limit_time", 12})
}

// writeTerraform has no data source: the identity itself names the provider.
func writeTerraform(i trust.Identity, side relation) string {
	return fmt.Sprintf("# In account %s. The provider is a resource of its own: --provider prints it.\n", side.account) +
		trust.Block("resource", []string{"alicloud_ram_role", i.ResourceName()}, trust.Member{"role_name", side.role}, trust.Member{"assume_role_policy_document", trust.JSONEncode(side.policy)})
}
