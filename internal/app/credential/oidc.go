package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
)

// defaultLoginTimeout is how long a person may take.
const defaultLoginTimeout = 5 * time.Minute

// OpenID are the settings of the source oidc; see oidc.Config, whose package takes longer to start than what is kept takes to serve.
type OpenID struct {
	Issuer, ClientID, ClientSecretFile, Present, Flow, RedirectURI, CAFile string

	Scopes       []string
	Ports        []int
	Parameters   map[string]string
	LoginTimeout time.Duration
	Now          func() time.Time
}

// Key is that of the source, for both programs.
func (o OpenID) Key() map[string]string {
	scopes := slices.Sorted(slices.Values(o.Scopes))
	key := map[string]string{
		"source": "oidc", "issuer": o.Issuer, "clientID": o.ClientID, "scopes": strings.Join(slices.Compact(scopes), " "), "present": o.Present,
	}
	if o.CAFile != "" {
		key["caFile"] = o.CAFile
	}
	for name, value := range o.Parameters {
		key["parameter "+name] = value
	}
	return key
}

// withCluster returns o with what the field oidc of a cluster's own configuration says; it names no file, port or flow.
func (o OpenID) withCluster(raw []byte) (OpenID, error) {
	var outer struct {
		OIDC json.RawMessage `json:"oidc"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.OIDC == nil {
		return o, nil
	}
	said := struct {
		Issuer, ClientID, Present string
		Scopes                    []string
		Parameters                map[string]string
	}{Issuer: o.Issuer, ClientID: o.ClientID, Present: o.Present}
	decoder := json.NewDecoder(strings.NewReader(string(outer.OIDC)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return o, fmt.Errorf("read oidc in the configuration of the cluster: %w", err)
	}
	for to, text := range map[*string]string{&o.Issuer: said.Issuer, &o.ClientID: said.ClientID, &o.Present: said.Present} {
		if text != "" {
			*to = text
		}
	}
	if said.Scopes != nil {
		o.Scopes = said.Scopes
	}
	o.Parameters = maps.Clone(o.Parameters)
	maps.Copy(o.Parameters, said.Parameters)
	return o, nil
}

type openID struct {
	settings   OpenID
	parameters []string
}

func oidcFlags(flags *pflag.FlagSet) Settings {
	o := &openID{}
	flags.StringVar(&o.settings.Issuer, "issuer", "", "The URL of the provider, exactly as it stands in its tokens")
	flags.StringVar(&o.settings.ClientID, "client-id", "", "The client that the provider knows this program as")
	flags.StringVar(&o.settings.ClientSecretFile, "client-secret-file", "", "A file with the secret of a confidential client; default: the client is public")
	flags.StringArrayVar(&o.settings.Scopes, "scope", nil, "A scope to ask for besides openid and offline_access; may be repeated")
	flags.StringVar(&o.settings.Present, "present", "id", "The token that the server gets: id or access")
	flags.StringVar(&o.settings.Flow, "flow", "auto", "How a person logs in: browser, device, or auto (the browser, if there is one here)")
	flags.StringVar(&o.settings.RedirectURI, "redirect-uri", "", "Where the provider sends the browser, on loopback; default: http://127.0.0.1/callback at any free port")
	flags.IntSliceVar(&o.settings.Ports, "port", nil, "Ports to try for it; default: any free one")
	flags.StringArrayVar(&o.parameters, "parameter", nil, "A parameter of the request that starts a login, NAME=VALUE; may be repeated")
	flags.StringVar(&o.settings.CAFile, "ca-file", "", "A PEM file of the authorities to trust for the provider; default: those of this machine")
	flags.DurationVar(&o.settings.LoginTimeout, "login-timeout", defaultLoginTimeout, "How long a person may take to log in")
	return o
}

func (o *openID) Choose(_ []string, place Place, ask credential.Ask) (Chosen, error) {
	settings := o.settings
	settings.Now, settings.Parameters = place.Now, map[string]string{}
	if settings.LoginTimeout <= 0 {
		return Chosen{}, wrongTime("login-timeout", settings.LoginTimeout)
	}
	if settings.Present == "" {
		return Chosen{}, missing("present")
	}
	for _, parameter := range o.parameters {
		name, value, ok := strings.Cut(parameter, "=")
		if _, again := settings.Parameters[name]; !ok || name == "" || again {
			return Chosen{}, fmt.Errorf("--parameter %q: wanted is NAME=VALUE, once for each name", name)
		}
		settings.Parameters[name] = value
	}
	var err error
	if settings.CAFile, err = absolute("ca-file", settings.CAFile, ask); err != nil {
		return Chosen{}, err
	}
	if settings.ClientSecretFile, err = absolute("client-secret-file", settings.ClientSecretFile, ask); err != nil {
		return Chosen{}, err
	}
	if settings, err = settings.withCluster(configuration(ask)); err != nil {
		return Chosen{}, err
	}
	source := keyed{key: settings.Key()}
	if place.Network.OpenID != nil {
		if source.Source, err = place.Network.OpenID(settings); err != nil {
			return Chosen{}, err
		}
	}
	// A login takes two requests more than the person does.
	return Chosen{Source: source, LockTimeout: settings.LoginTimeout + 2*afterwards}, nil
}

// keyed is a source with a key that is known without it. Source is nil where only the key is of interest.
type keyed struct {
	credential.Source
	key map[string]string
}

func (k keyed) Key() map[string]string { return k.key }

func (k keyed) Obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	if k.Source == nil {
		return credential.Credential{}, nil, errors.New("this program has no way to get a credential")
	}
	return k.Source.Obtain(ctx, request)
}
