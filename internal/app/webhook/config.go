package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// Config is what the webhook needs. The certificate is required; everything else works at its zero value.
type Config struct {
	Kubeconfig         string // of the cluster whose pods are admitted; empty: the pod's own
	IdentityKubeconfig string // of the cluster that has the identities; empty: the same

	Delivery string // how tokens come to pods of namespaces that do not choose; empty: by Secrets

	BindAddress       string // empty: 127.0.0.1
	Port              int    // 0: a free one
	HealthPort        int    // 0: no health server
	AnonymousMetrics  bool   // /metrics is for all
	TLSCertFile       string
	TLSPrivateKeyFile string
	ClientCAFile      string // PEM of the authorities whose client certificates are let in; empty: no certificate is requested
	ClientName        string // common name of these certificates; empty: any

	// ReviewPathPeriod is after what time the secret paths are replaced that reviews are answered at without ClientCAFile; 0: 10 minutes.
	ReviewPathPeriod time.Duration

	TracingConfig string // file of a TracingConfiguration; empty: nothing is traced

	AgentUser string // empty: that of deploy/base

	GMSA GMSAConfig

	Log *slog.Logger // nil: slog.Default()
}

const (
	defaultBindAddress = "127.0.0.1"
	defaultPort        = 9443
	defaultPathPeriod  = 10 * time.Minute
	minPathPeriod      = 10 * time.Second
)

// check fills in what is unset, and names the first flag that is missing or wrong.
func (c Config) check() (Config, error) {
	c.BindAddress = cmp.Or(c.BindAddress, defaultBindAddress)
	if c.AgentUser == "" {
		c.AgentUser = rights.Agent().Name
	}
	c.ReviewPathPeriod = cmp.Or(c.ReviewPathPeriod, defaultPathPeriod)
	c.GMSA.Enforcement = cmp.Or(c.GMSA.Enforcement, string(webhook.Deny))
	if _, err := webhook.ParseEnforcement(c.GMSA.Enforcement); err != nil {
		return c, fmt.Errorf("--gmsa-enforcement %w", err)
	}
	if err := serving.CheckDelivery(c.Delivery); err != nil {
		return c, err
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	switch {
	case c.TLSCertFile == "" || c.TLSPrivateKeyFile == "":
		return c, errors.New("--tls-cert-file and --tls-private-key-file are required: the API server speaks to webhooks over TLS alone")
	case c.ReviewPathPeriod < minPathPeriod:
		return c, fmt.Errorf("--review-path-period %s is too short: give %s or more", c.ReviewPathPeriod, minPathPeriod)
	case c.ClientName != "" && c.ClientCAFile == "":
		return c, errors.New("--client-name needs --client-ca-file: the authorities of the certificates that have this name")
	case net.ParseIP(c.BindAddress) == nil:
		return c, fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", c.BindAddress)
	case c.Port < 0 || c.Port > 65535:
		return c, fmt.Errorf("--port %d is not a port: give 1 to 65535, or 0 for a free one", c.Port)
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return c, fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", c.HealthPort)
	case c.HealthPort != 0 && c.HealthPort == c.Port:
		return c, fmt.Errorf("--health-port %d is the same as --port: give another one", c.HealthPort)
	}
	return c, nil
}
