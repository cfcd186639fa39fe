package provider

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

type exchange struct {
	source         tokenexchange.Source
	authentication string
}

func tokenExchangeFlags(flags *pflag.FlagSet) Settings {
	e := &exchange{}
	flags.StringVar(&e.source.Endpoint, "endpoint", "", "The URL of the authorization server's token endpoint")
	flags.StringVar(&e.source.SubjectTokenFile, "subject-token-file", "", "The file with the token that is exchanged; it is read anew each time")
	flags.StringVar(&e.source.SubjectTokenType, "subject-token-type", tokenendpoint.JWT, "The type of that token")
	flags.StringVar(&e.source.RequestedTokenType, "requested-token-type", "", "The type of token to request; default: what the server chooses")
	flags.StringArrayVar(&e.source.Resources, "resource", nil, "A URI that the new token is for; may be repeated")
	flags.StringArrayVar(&e.source.Audiences, "audience", nil, "An audience of the new token; may be repeated")
	flags.StringArrayVar(&e.source.Scopes, "scope", nil, "A scope of the new token; may be repeated")
	flags.StringVar(&e.authentication, "authentication", string(tokenexchange.None), "How the client authenticates itself: none, basic or post")
	flags.StringVar(&e.source.ClientID, "client-id", "", "The client that the server knows this program as")
	flags.StringVar(&e.source.ClientSecretFile, "client-secret-file", "", "A file with the client's secret, for basic and post")
	flags.StringVar(&e.source.CAFile, "ca-file", "", "A PEM file of the authorities to trust for the server; default: those of this machine")
	flags.DurationVar(&e.source.Timeout, "timeout", tokenexchange.DefaultTimeout, "How long an exchange may take")
	return e
}

func (e *exchange) Choose(_ []string, place Place, info credential.ExecInfo) (Chosen, error) {
	source, err := e.source.WithCluster(configuration(info))
	if err != nil {
		return Chosen{}, err
	}
	source.Authentication, source.Poster, source.Now = tokenexchange.Authentication(e.authentication), place.Network.Exchange, place.Now
	if source.Endpoint == "" {
		return Chosen{}, missing("endpoint")
	}
	if source.SubjectTokenFile == "" {
		return Chosen{}, missing("subject-token-file")
	}
	if source.Timeout <= 0 {
		return Chosen{}, wrongTime("timeout", source.Timeout)
	}
	for flag, path := range map[string]*string{
		"subject-token-file": &source.SubjectTokenFile, "client-secret-file": &source.ClientSecretFile, "ca-file": &source.CAFile,
	} {
		if *path, err = absolute(flag, *path, info); err != nil {
			return Chosen{}, err
		}
	}
	if err := source.Check(); err != nil {
		return Chosen{}, err
	}
	return Chosen{Source: &source, LockTimeout: source.Timeout + time.Minute}, nil
}
