package provider

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
)

type workloadIdentity struct {
	duration time.Duration
	context  string
}

func workloadIdentityFlags(flags *pflag.FlagSet) Settings {
	w := &workloadIdentity{}
	flags.DurationVar(&w.duration, "duration", 0, "How long the token is to be valid, such as 30m or 12h; default: the server's, 1h")
	flags.StringVar(&w.context, "context", "", "The object on whose behalf the token is used: serviceaccount/NAME")
	return w
}

func (w *workloadIdentity) Choose(args []string, place Place, info credential.ExecInfo) (Chosen, error) {
	settings := workloadidentity.Settings{Namespace: place.Namespace, Duration: w.duration, Context: w.context}
	if len(args) > 0 {
		settings.Name = args[0]
	}
	settings, err := settings.WithCluster(configuration(info))
	if err != nil {
		return Chosen{}, err
	}
	access, err := place.access(info)
	if err != nil {
		return Chosen{}, err
	}
	source, err := workloadidentity.New(settings, access, place.Network.Tokens)
	return Chosen{Source: source}, err
}
