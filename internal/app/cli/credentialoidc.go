package cli

import (
	"context"
	"encoding/json"

	provider "github.com/credence-id/credence/internal/app/credential"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
)

// openID returns the source for settings, or what is wrong with them.
func openID(o provider.OpenID) (credential.Source, error) {
	return oidc.New(oidc.Config{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecretFile: o.ClientSecretFile, Scopes: o.Scopes, Present: oidc.Token(o.Present),
		Flow: oidc.Flow(o.Flow), RedirectURI: o.RedirectURI, Ports: o.Ports, Parameters: o.Parameters, CAFile: o.CAFile,
		LoginTimeout: o.LoginTimeout, Now: o.Now,
	})
}

// revokeAtProvider ends on the other side what was kept of a login, where its source can. secretFile is that of a confidential client.
func revokeAtProvider(ctx context.Context, key map[string]string, state json.RawMessage, secretFile string) error {
	if key["source"] != "oidc" || len(state) == 0 {
		return nil
	}
	source, err := oidc.New(oidc.Config{Issuer: key["issuer"], ClientID: key["clientID"], CAFile: key["caFile"], ClientSecretFile: secretFile})
	if err != nil {
		return err
	}
	return source.Revoke(ctx, state)
}
