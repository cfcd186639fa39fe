package signer

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// NewCommand returns the command `signer`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	level := slog.LevelInfo
	command := &cobra.Command{
		Use:   "signer",
		Short: "Sign the service-account tokens of a kube-apiserver with keys that rotate",
		Long: `Sign the service-account tokens of a kube-apiserver, and rotate the keys.

kube-apiserver calls it over a unix socket (--service-account-signing-endpoint, Kubernetes 1.36 or later), and
publishes the keys in its own discovery documents. The keys are in a folder of this program alone, and made
at the first start. There is always a spare key that kube-apiserver publishes and that has never signed: it
signs when the rotation period is over, and the former key stays published until its last token has expired.

A process that reaches the socket can have any token signed, and one that reads the folder can sign any: both have
to belong to the user that this program and kube-apiserver run as. Never give it the folder of keys of
credence-server apiserver: workload identities have keys and an issuer of their own.`,
		Example: `  credence-server signer --issuer https://kubernetes.default.svc.cluster.local --keys-dir /var/lib/credence/service-accounts \
    --past-file /var/lib/credence-signer/past.json --socket /run/credence-signer/socket`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Issuer, "issuer", "", "the first --service-account-issuer of kube-apiserver: tokens of another issuer are not signed (required)")
	flags.StringVar(&config.KeysDir, "keys-dir", "", "folder with the ring of keys, of mode 0700; made, with new keys, where it is missing (required)")
	flags.StringVar(&config.PastFile, "past-file", "", "file outside of --keys-dir, in a folder that exists, in which to keep which keys were published and revoked: with it, an older ring that was put back signs nothing, also after a restart")
	flags.StringVar(&config.Socket, "socket", "", "absolute path of the unix socket to listen on; its folder has mode 0700, and is made where it is missing (required)")
	flags.StringVar(&config.Algorithm, "algorithm", string(identity.RS256), "`ALGORITHM` to sign with: RS256, which every relying party verifies, or ES256, which costs a small part of it")
	addSettings(flags, &config.Settings)
	flags.IntVar(&config.HealthPort, "health-port", 0, "port of /livez, /readyz and /metrics on 127.0.0.1, over plain HTTP; 0 turns them off")
	flags.TextVar(&level, "log-level", level, "least severe `LEVEL` of log messages to write: debug, info, warn or error")
	return command
}

func addSettings(flags *pflag.FlagSet, settings *keys.Settings) {
	for _, flag := range []struct {
		value    *time.Duration
		name     string
		standard time.Duration
		usage    string
	}{
		{&settings.RotationPeriod, "key-rotation-period", keys.DefaultRotationPeriod, "how long a key signs"},
		{&settings.PublishPeriod, "key-publish-period", keys.DefaultPublishPeriod, "for how long those who verify tokens may not have noticed a new key: kube-apiserver has it for that long, and for what clocks may be wrong, before it signs"},
		{&settings.MaxLifetime, "token-max-duration", keys.DefaultMaxLifetime, "longest lifetime of a token, at least 10m: kube-apiserver issues none that is longer, and a key that has signed stays published for that long"},
		{&settings.Leeway, "key-leeway", keys.DefaultLeeway, "how long after its expiry a token may be accepted"},
		{&settings.Staleness, "keys-staleness", keys.DefaultStaleness, "how long kube-apiserver may keep the keys without fetching them again, at least 2s: a key that was revoked is accepted for that long; nothing is signed with a ring that was read longer ago"},
		{&settings.ClockSkew, "clock-skew", keys.DefaultClockSkew, "how wrong the clock may be at any time"},
	} {
		flags.DurationVar(flag.value, flag.name, flag.standard, fmt.Sprintf("%s; whole seconds", flag.usage))
	}
}
