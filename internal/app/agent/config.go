package agent

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/identity"
)

// Config is what the agent needs. Everything works at its zero value.
type Config struct {
	Kubeconfig         string // of the workload cluster; empty: the pod's own
	IdentityKubeconfig string // of the identity cluster; empty: the workload cluster
	RenewInSecret      bool   // the tokens of that kubeconfig are mounted from a Secret of the workload cluster, where they are renewed

	Delivery string // how tokens come to pods of namespaces that do not choose; empty: by Secrets

	Namespaces []string // of the workload cluster; empty: all

	Window      renewal.Window // zero: 60 to 80 % of the lifetime
	Duration    time.Duration  // of tokens; zero: the API server's default
	Concurrency int            // zero: 8

	LeaseNamespace string // empty: credence-system

	PodsPort int // at which pods of the workload cluster get tokens; 0: at none

	serving.Health

	Log *slog.Logger // nil: slog.Default()
}

const (
	defaultRenewFrom      = 0.6
	defaultRenewTo        = 0.8
	defaultConcurrency    = 8
	maxConcurrency        = 256
	defaultLeaseNamespace = "credence-system"
)

// complete fills in what is unset, and names the first flag that is wrong or contradicts another.
func (c Config) complete() (Config, error) {
	c.LeaseNamespace = cmp.Or(c.LeaseNamespace, defaultLeaseNamespace)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.Log = cmp.Or(c.Log, slog.Default())
	err := serving.CheckDelivery(c.Delivery)
	if err != nil {
		return c, err
	}
	if c.Window, err = c.Window.Complete(); err != nil {
		return c, fmt.Errorf("--renew-from, --renew-to: %w", err)
	}
	for _, namespace := range c.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return c, fmt.Errorf("--namespaces: %q is not a name of a namespace: %s", namespace, problems[0])
		}
	}
	switch {
	case c.RenewInSecret && c.IdentityKubeconfig == "":
		return c, errors.New("--renew-in-secret needs --identity-kubeconfig: without it there are no tokens to renew")
	case c.PodsPort < 0 || c.PodsPort > 65535:
		return c, fmt.Errorf("--pods-port %d is not a port: give 1 to 65535, or 0 for none", c.PodsPort)
	case c.PodsPort != 0 && c.IdentityKubeconfig == "":
		return c, errors.New("--pods-port needs --identity-kubeconfig: the API of a cluster that has the identities gives tokens to its pods itself")
	case c.PodsPort != 0 && (c.TLSCertFile == "" || c.TLSPrivateKeyFile == ""):
		return c, errors.New("--pods-port needs --tls-cert-file and --tls-private-key-file: the certificate to serve it with")
	case c.Duration != 0 && c.Duration < identity.ShortestLifetime:
		return c, fmt.Errorf("--token-duration %s is shorter than %s, the shortest that a token can be requested with", c.Duration, identity.ShortestLifetime)
	case c.Concurrency < 1 || c.Concurrency > maxConcurrency:
		return c, fmt.Errorf("--concurrency %d must be from 1 to %d", c.Concurrency, maxConcurrency)
	}
	err = c.Health.Complete()
	return c, err
}
