package credential

import (
	"context"
	"encoding/json"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// openID returns the source for settings, or what is wrong with them.
func openID(login settings.Settings, now func() time.Time) (credential.Source, error) {
	return oidc.New(oidc.Config{Settings: login, Now: now})
}

// revokeAtProvider ends on the other side what was kept of a login, where its source can. secretFile is that of a confidential client.
func revokeAtProvider(ctx context.Context, key map[string]string, state json.RawMessage, secretFile string) error {
	if key["source"] != "oidc" || len(state) == 0 {
		return nil
	}
	source, err := oidc.New(oidc.Config{Settings: settings.Settings{
		Issuer: key["issuer"], ClientID: key["clientID"], CAFile: key["caFile"], ClientSecretFile: secretFile,
	}})
	if err != nil {
		return err
	}
	return source.Revoke(ctx, state)
}
