// Package settings makes flags of the settings by which keys change, for every program that has them: they have one name
// and one meaning everywhere. In go a set of flags and the settings to fill in. It checks nothing: keys.Settings.Complete does.
package settings

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/keyring/keys"
)

// AddFlags adds the flags by which keys change.
func AddFlags(flags *pflag.FlagSet, settings *keys.Settings) {
	for _, flag := range []struct {
		value    *time.Duration
		name     string
		standard time.Duration
		usage    string
	}{
		{&settings.RotationPeriod, "key-rotation-period", keys.DefaultRotationPeriod, "how long a key signs"},
		{&settings.PublishPeriod, "key-publish-period", keys.DefaultPublishPeriod, "for how long relying parties may not have noticed a new key: a key is published for that long, and for what clocks and replicas may be late, before it signs"},
		{&settings.MaxAge, "max-age", keys.DefaultMaxAge, "the longest max-age with which the documents are served (--max-age of the discovery server)"},
		{&settings.MaxLifetime, "token-max-duration", keys.DefaultMaxLifetime, "longest lifetime of a token: a key that has signed stays published for that long, and no key signs longer ones"},
		{&settings.Leeway, "key-leeway", keys.DefaultLeeway, "how long after its expiry relying parties may accept a token"},
		{&settings.Staleness, "keys-staleness", keys.DefaultStaleness, "how late a replica may learn of a change: it signs with no ring that it has read longer ago"},
		{&settings.ClockSkew, "clock-skew", keys.DefaultClockSkew, "how wrong a clock may be at any time"},
	} {
		flags.DurationVar(flag.value, flag.name, flag.standard, fmt.Sprintf("%s; whole seconds", flag.usage))
	}
}
