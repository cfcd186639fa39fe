package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
)

// defaultLoginTimeout is how long a person may take.
const defaultLoginTimeout = 5 * time.Minute

type openID struct {
	config        oidc.Config
	present, flow string
	parameters    []string
}

func oidcFlags(flags *pflag.FlagSet) Settings {
	o := &openID{}
	flags.StringVar(&o.config.Issuer, "issuer", "", "The URL of the provider, exactly as it stands in its tokens")
	flags.StringVar(&o.config.ClientID, "client-id", "", "The client that the provider knows this program as")
	flags.StringVar(&o.config.ClientSecretFile, "client-secret-file", "", "A file with the secret of a confidential client; default: the client is public")
	flags.StringArrayVar(&o.config.Scopes, "scope", nil, "A scope to ask for besides openid and offline_access; may be repeated")
	flags.StringVar(&o.present, "present", string(oidc.IDToken), "The token that the server gets: id or access")
	flags.StringVar(&o.flow, "flow", string(oidc.Auto), "How a person logs in: browser, device, or auto (the browser, if there is one here)")
	flags.StringVar(&o.config.RedirectURI, "redirect-uri", "", "Where the provider sends the browser, on loopback; default: http://127.0.0.1/callback at any free port")
	flags.IntSliceVar(&o.config.Ports, "port", nil, "Ports to try for it; default: any free one")
	flags.StringArrayVar(&o.parameters, "parameter", nil, "A parameter of the request that starts a login, NAME=VALUE; may be repeated")
	flags.StringVar(&o.config.CAFile, "ca-file", "", "A PEM file of the authorities to trust for the provider; default: those of this machine")
	flags.DurationVar(&o.config.LoginTimeout, "login-timeout", defaultLoginTimeout, "How long a person may take to log in")
	return o
}

func (o *openID) Choose(_ []string, place Place, ask credential.Ask) (Chosen, error) {
	config := o.config
	config.Present, config.Flow, config.Now = oidc.Token(o.present), oidc.Flow(o.flow), place.Now
	if config.LoginTimeout <= 0 {
		return Chosen{}, wrongTime("login-timeout", config.LoginTimeout)
	}
	config.Parameters = map[string]string{}
	for _, parameter := range o.parameters {
		name, value, ok := strings.Cut(parameter, "=")
		if _, again := config.Parameters[name]; !ok || name == "" || again {
			return Chosen{}, fmt.Errorf("--parameter %q: wanted is NAME=VALUE, once for each name", name)
		}
		config.Parameters[name] = value
	}
	var err error
	if config.CAFile, err = absolute("ca-file", config.CAFile, ask); err != nil {
		return Chosen{}, err
	}
	if config.ClientSecretFile, err = absolute("client-secret-file", config.ClientSecretFile, ask); err != nil {
		return Chosen{}, err
	}
	if config, err = config.WithCluster(configuration(ask)); err != nil {
		return Chosen{}, err
	}
	source, err := oidc.New(config)
	// A login takes two requests more than the person does.
	return Chosen{Source: source, LockTimeout: config.LoginTimeout + 2*afterwards}, err
}

// Revoke ends on the other side what was kept of a login, where its source can. secretFile is that of a confidential client.
func Revoke(ctx context.Context, key map[string]string, state json.RawMessage, secretFile string) error {
	if key["source"] != "oidc" || len(state) == 0 {
		return nil
	}
	source, err := oidc.New(oidc.Config{Issuer: key["issuer"], ClientID: key["clientID"], CAFile: key["caFile"], ClientSecretFile: secretFile})
	if err != nil {
		return err
	}
	return source.Revoke(ctx, state)
}
