package signer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Config is what the signer needs. Issuer, KeysDir and Socket are required; everything else works at its zero value.
type Config struct {
	Issuer    string // the iss of every token, byte for byte
	KeysDir   string // folder with the ring
	Socket    string // absolute path
	Algorithm string // empty: RS256
	PastFile  string // what is known of the ring, outside of KeysDir; empty: this process alone knows it

	// Settings say when keys change. MaxAge is not one to choose: kube-apiserver's documents have the one that the signer reports.
	Settings keys.Settings

	HealthPort     int          // 0: no health server
	HealthListener net.Listener // takes the place of HealthPort
	Log            *slog.Logger // nil: slog.Default()
}

// shortestStaleness leaves room for two reads of the ring, which are a second apart at least.
const shortestStaleness = 2 * time.Second

// check fills in what is unset, and names the first flag that is missing, wrong, or contradicts another.
func (c Config) check() (Config, error) {
	c.Algorithm = cmp.Or(c.Algorithm, string(identity.RS256))
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Settings.Staleness = cmp.Or(c.Settings.Staleness, keys.DefaultStaleness)
	c.Settings.MaxAge = c.Settings.Staleness
	switch {
	case c.Issuer == "":
		return c, errors.New("--issuer is missing: give the first --service-account-issuer of kube-apiserver")
	case c.KeysDir == "":
		return c, errors.New("--keys-dir is missing: give a folder for the ring of keys, which is made where it is missing")
	case c.Socket == "":
		return c, errors.New("--socket is missing: give the path that kube-apiserver has as --service-account-signing-endpoint")
	case c.PastFile != "" && pastFile(c.PastFile).in(c.KeysDir):
		return c, fmt.Errorf("--past-file %s is in --keys-dir, and would be put back together with an older ring: give a file elsewhere", c.PastFile)
	case !slices.Contains(keys.Algorithms(), identity.Algorithm(c.Algorithm)):
		return c, fmt.Errorf("--algorithm %.64q is unknown: give one of %q", c.Algorithm, keys.Algorithms())
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return c, fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", c.HealthPort)
	case c.Settings.Staleness < shortestStaleness:
		return c, fmt.Errorf("--keys-staleness %s must be at least %s", c.Settings.Staleness, shortestStaleness)
	}
	settings, err := c.Settings.Complete()
	if err != nil {
		return c, fmt.Errorf("the key settings contradict each other: %w", err)
	}
	if settings.MaxLifetime < identity.ShortestLifetime {
		return c, fmt.Errorf("--token-max-duration %s must be at least %s: kube-apiserver refuses a signer that offers less", settings.MaxLifetime, identity.ShortestLifetime)
	}
	c.Settings = settings
	return c, nil
}
