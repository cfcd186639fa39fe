package vault

import (
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/trust"
)

// mount is Vault's default; users with another one change it in one place of the output.
const mount = "jwt"

func role(i trust.Identity) (trust.Object, error) {
	claims, err := boundClaims(i.Bearer)
	return append(append(trust.Object{
		{"role_type", "jwt"},
		{"user_claim", "sub"},
		{"bound_subject", i.Subject},
		{"bound_audiences", i.Audiences},
	}, claims...),
		trust.Member{"token_policies", []string{i.Label()}},
		trust.Member{"token_ttl", "1h"},
	), err
}

// boundClaims is the field of a role for the claims of a bearer, by their JSON pointers; nothing without any.
func boundClaims(bearer trust.Bearer) ([]trust.Member, error) {
	if len(bearer.Absent()) > 0 {
		return nil, trust.ErrAbsent
	}
	var bound trust.Object
	for _, claim := range bearer.Claims() {
		bound = append(bound, trust.Member{"/" + strings.Join(claim.Path, "/"), claim.Value})
	}
	if bound == nil {
		return nil, nil
	}
	return []trust.Member{{"bound_claims", bound}}, nil
}

func writeCommands(i trust.Identity) (string, error) {
	role, err := role(i)
	if err != nil {
		return "", err
	}
	// Values of key=value are files to vault if they begin with @. Those of JSON are not.
	write := func(path string, body trust.Object) string {
		return "printf '%s' " + trust.Shell(trust.Document(body)) + " |\n  vault write " + trust.Shell(path) + " -\n"
	}
	return fmt.Sprintf(`# Once for all identities of the issuer. An issuer whose certificate is of an authority of your own needs
# oidc_discovery_ca_pem too.
vault auth enable -path=%s jwt
%s
# The identity gets the policy %s: write it, or name others.
%s`, mount, write("auth/"+mount+"/config", trust.Object{{"oidc_discovery_url", i.Issuer}, {"bound_issuer", i.Issuer}}),
		i.Label(), write("auth/"+mount+"/role/"+i.Label(), role)), nil
}

func writeProvider(i trust.Identity) (string, error) {
	return trust.Block("resource", []string{"vault_jwt_auth_backend", i.SharedName(mount)}, trust.Member{"path", mount}, trust.Member{"oidc_discovery_url", i.Issuer}, trust.Member{"bound_issuer", i.Issuer}), nil
}

func writeTerraform(i trust.Identity) (string, error) {
	claims, err := boundClaims(i.Bearer)
	if err != nil {
		return "", err
	}
	name := i.ResourceName()
	return "# With hashicorp/vault 3 or newer. The backend is there already: --provider prints it.\n" +
		fmt.Sprintf("# The identity gets the policy %s: write it, or name others.\n", i.Label()) +
		trust.Block("resource", []string{"vault_jwt_auth_backend_role", name}, append(append([]trust.Member{{"backend", mount}, {"role_name", i.Label()},
			{"role_type", "jwt"}, {"user_claim", "sub"}, {"bound_subject", i.Subject}, {"bound_audiences", i.Audiences}}, claims...),
			trust.Member{"token_policies", []string{i.Label()}}, trust.Member{"token_ttl", 3600})...), nil
}
