package trust

import "fmt"

// The mount is Vault's default; users with another one change it in one place of the output.
const vaultMount = "jwt"

func vaultRole(i Identity) object {
	return object{
		{"role_type", "jwt"},
		{"user_claim", "sub"},
		{"bound_subject", i.Subject},
		{"bound_audiences", i.Audiences},
		{"token_policies", []string{i.label()}},
		{"token_ttl", "1h"},
	}
}

func vaultCommands(i Identity) (string, error) {
	// Values of key=value are files to vault if they begin with @. Those of JSON are not.
	write := func(path string, body object) string {
		return "printf '%s' " + shell(document(body)) + " |\n  vault write " + shell(path) + " -\n"
	}
	return fmt.Sprintf(`# Once for all identities of the issuer. An issuer whose certificate is of an authority of your own needs
# oidc_discovery_ca_pem too.
vault auth enable -path=%s jwt
%s
# The identity gets the policy %s: write it, or name others.
%s`, vaultMount, write("auth/"+vaultMount+"/config", object{{"oidc_discovery_url", i.Issuer}, {"bound_issuer", i.Issuer}}),
		i.label(), write("auth/"+vaultMount+"/role/"+i.label(), vaultRole(i))), nil
}

func vaultProvider(i Identity) (string, error) {
	return block("resource", []string{"vault_jwt_auth_backend", i.sharedName(vaultMount)}, member{"path", vaultMount}, member{"oidc_discovery_url", i.Issuer}, member{"bound_issuer", i.Issuer}), nil
}

func vaultTerraform(i Identity) (string, error) {
	name := i.resourceName()
	return "# The backend is there already: --provider prints it.\n" +
		block("data", []string{"vault_auth_backend", name}, member{"path", vaultMount}) + "\n" +
		fmt.Sprintf("# The identity gets the policy %s: write it, or name others.\n", i.label()) +
		block("resource", []string{"vault_jwt_auth_backend_role", name}, append([]member{{"backend", reference("data.vault_auth_backend." + name + ".path")}, {"role_name", i.label()}},
			member{"role_type", "jwt"}, member{"user_claim", "sub"}, member{"bound_subject", i.Subject}, member{"bound_audiences", i.Audiences},
			member{"token_policies", []string{i.label()}}, member{"token_ttl", 3600})...), nil
}
