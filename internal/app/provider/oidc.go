package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// defaultLoginTimeout is how long a person may take.
const defaultLoginTimeout = 5 * time.Minute

type openID struct {
	flags      *pflag.FlagSet
	settings   settings.Settings
	parameters []string
}

func oidcFlags(flags *pflag.FlagSet) Settings {
	o := &openID{flags: flags}
	flags.StringVar(&o.settings.Issuer, "issuer", "", "The URL of the provider, exactly as it stands in its tokens")
	flags.StringVar(&o.settings.ClientID, "client-id", "", "The client that the provider knows this program as")
	flags.StringVar(&o.settings.ClientSecretFile, "client-secret-file", "", "A file with the secret of a confidential client, which others cannot read; default: the client is public")
	flags.StringArrayVar(&o.settings.Scopes, "scope", nil, "A scope to request besides openid and offline_access; may be repeated")
	flags.StringVar((*string)(&o.settings.Present), "present", string(settings.IDToken), "The token that the server gets: id or access")
	flags.StringVar((*string)(&o.settings.Flow), "flow", string(settings.Auto), "How a person logs in: browser, device, or auto (the browser, if there is one here)")
	flags.StringVar(&o.settings.RedirectURI, "redirect-uri", "", "Where the provider sends the browser, on loopback; default: http://127.0.0.1/callback at any free port")
	flags.IntSliceVar(&o.settings.Ports, "port", nil, "Ports to try for it; default: any free one")
	flags.StringArrayVar(&o.parameters, "parameter", nil, "A parameter of the request that starts a login, NAME=VALUE; may be repeated")
	flags.StringVar(&o.settings.CAFile, "ca-file", "", "A PEM file of the authorities to trust for the provider; default: those of this machine")
	flags.DurationVar(&o.settings.LoginTimeout, "login-timeout", defaultLoginTimeout, "How long a person may take to log in")
	return o
}

func (o *openID) Choose(_ []string, place Place, info credential.ExecInfo) (Chosen, error) {
	login := o.settings
	login.Parameters = map[string]string{}
	if login.LoginTimeout <= 0 {
		return Chosen{}, wrongTime("login-timeout", login.LoginTimeout)
	}
	if login.Present == "" {
		return Chosen{}, missing("present")
	}
	if !o.flags.Changed("present") {
		login.Present = "" // the cluster may set it
	}
	if login.ClientSecretFile != "" && login.Issuer == "" {
		return Chosen{}, errors.New("--client-secret-file needs --issuer: a secret must not go to whichever provider a cluster names")
	}
	for _, parameter := range o.parameters {
		name, value, ok := strings.Cut(parameter, "=")
		if _, again := login.Parameters[name]; !ok || name == "" || again {
			return Chosen{}, fmt.Errorf("--parameter %q: wanted is NAME=VALUE, once for each name", name)
		}
		login.Parameters[name] = value
	}
	var err error
	if login.CAFile, err = absolute("ca-file", login.CAFile, info); err != nil {
		return Chosen{}, err
	}
	if login.ClientSecretFile, err = absolute("client-secret-file", login.ClientSecretFile, info); err != nil {
		return Chosen{}, err
	}
	if login, err = login.WithCluster(configuration(info)); err != nil {
		return Chosen{}, err
	}
	source := credential.Source(known{login})
	if place.Network.OpenID != nil {
		if source, err = place.Network.OpenID(login, place.Now); err != nil {
			return Chosen{}, err
		}
	}
	// A login takes two requests more than the person does.
	return Chosen{Source: source, LockTimeout: login.LoginTimeout + 2*afterwards, CostsPerson: true}, nil
}

// known is a source of which only the key is of interest.
type known struct{ settings.Settings }

func (known) Obtain(context.Context, credential.Request) (credential.Credential, json.RawMessage, error) {
	return credential.Credential{}, nil, errors.New("this program has no way to get a credential")
}
