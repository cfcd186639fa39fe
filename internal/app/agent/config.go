package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/identity"
)

// Config is what the agent needs. Everything works at its zero value.
type Config struct {
	Kubeconfig         string // of the workload cluster; empty: the pod's own
	IdentityKubeconfig string // of the identity cluster; empty: the workload cluster

	Window      renewal.Window // zero: 60 to 80 % of the lifetime
	Duration    time.Duration  // of tokens; zero: the API server's default
	Concurrency int            // zero: 8

	LeaseNamespace string // empty: credence-system

	BindAddress       string // empty: 127.0.0.1
	HealthPort        int    // 0: no health server
	TLSCertFile       string
	TLSPrivateKeyFile string

	Log *slog.Logger // nil: slog.Default()
}

const (
	defaultRenewFrom      = 0.6
	defaultRenewTo        = 0.8
	defaultConcurrency    = 8
	maxConcurrency        = 256
	defaultBindAddress    = "127.0.0.1"
	defaultLeaseNamespace = "credence-system"
)

// complete fills in what is unset, and names the first flag that is wrong or contradicts another.
func (c Config) complete() (Config, error) {
	if c.BindAddress == "" {
		c.BindAddress = defaultBindAddress
	}
	if c.LeaseNamespace == "" {
		c.LeaseNamespace = defaultLeaseNamespace
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var err error
	if c.Window, err = c.Window.Complete(); err != nil {
		return c, fmt.Errorf("--renew-from, --renew-to: %w", err)
	}
	switch {
	case c.Duration != 0 && c.Duration < identity.ShortestLifetime:
		return c, fmt.Errorf("--token-duration %s is shorter than %s, the least that a token can be asked for with", c.Duration, identity.ShortestLifetime)
	case c.Concurrency < 1 || c.Concurrency > maxConcurrency:
		return c, fmt.Errorf("--concurrency %d must be from 1 to %d", c.Concurrency, maxConcurrency)
	case net.ParseIP(c.BindAddress) == nil:
		return c, fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", c.BindAddress)
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return c, fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", c.HealthPort)
	case c.HealthPort != 0 && (c.TLSCertFile == "" || c.TLSPrivateKeyFile == ""):
		return c, errors.New("--health-port needs --tls-cert-file and --tls-private-key-file: the certificate to serve it with")
	}
	return c, nil
}

func (c Config) health() serving.HealthPort {
	return serving.HealthPort{BindAddress: c.BindAddress, Port: c.HealthPort, TLSCertFile: c.TLSCertFile, TLSPrivateKeyFile: c.TLSPrivateKeyFile}
}
