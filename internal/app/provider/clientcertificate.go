package provider

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
)

// day is how long a certificate is valid by default: it can't be revoked before, and a person approves each one.
const day = 24 * time.Hour

// afterwards is how much longer than the one who is at work others wait for it.
const afterwards = time.Minute

type clientCertificate struct {
	flags    *pflag.FlagSet
	settings clientcertificate.Settings
}

func clientCertificateFlags(flags *pflag.FlagSet) Settings {
	c := &clientCertificate{flags: flags}
	flags.StringVar(&c.settings.User, "user-name", "", "The name that the certificate is to stand for")
	flags.StringArrayVar(&c.settings.Groups, "group", nil, "A group of the user; may be repeated")
	flags.StringVar(&c.settings.Signer, "signer", clientcertificate.DefaultSigner, "The signer")
	flags.StringArrayVar(&c.settings.Usages, "usage", nil, `A usage of the key; may be repeated; default: "client auth" and "digital signature"`)
	flags.DurationVar(&c.settings.Duration, "duration", day, "How long the certificate is to be valid, 10m at least; signers may make it shorter")
	flags.DurationVar(&c.settings.Wait, "wait", 0, "How long to wait for approval; default: 10m, and 45s without a person to approve")
	flags.DurationVar(&c.settings.RenewBefore, "renew-before", clientcertificate.DefaultRenewBefore, "How long before its end the certificate is replaced")
	flags.StringVar(&c.settings.Key, "key", "", "Not possible: a key in a device (pkcs11:…, tpm:…) cannot be handed to a client")
	flags.StringVar(&c.settings.Key, "key-file", "", "Not possible: see --key")
	_ = flags.MarkHidden("key-file") // for those who look for it
	return c
}

func (c *clientCertificate) Choose(_ []string, place Place, info credential.ExecInfo) (Chosen, error) {
	settings := c.settings
	// The cluster may replace what is only a default.
	if !c.flags.Changed("signer") {
		settings.Signer = ""
	}
	if !c.flags.Changed("duration") {
		settings.Duration = 0
	}
	settings, err := settings.WithCluster(configuration(info))
	if err != nil {
		return Chosen{}, err
	}
	if settings.Duration == 0 && !c.flags.Changed("duration") {
		settings.Duration = day
	}
	settings.Now, settings.Pause = place.Now, credential.Pause
	access, err := place.access(info)
	if err != nil && settings.Key == "" { // a key is refused, whatever the cluster
		return Chosen{}, err
	}
	source, err := clientcertificate.New(settings, access, place.Network.Certificates)
	if err != nil {
		return Chosen{}, err
	}
	return Chosen{Source: source, Margin: source.RenewBefore(), LockTimeout: source.Wait(info.Interactive) + afterwards, CostsPerson: true}, nil
}
