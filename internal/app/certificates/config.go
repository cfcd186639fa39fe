package certificates

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/certificates"
)

// Config is what the program needs. Its zero value is fit for use in a pod.
type Config struct {
	Kubeconfig        string   // empty: the pod's own
	Namespace         string   // empty: credence-system
	Components        []string // nil: all
	ClusterDomain     string   // empty: cluster.local
	Hosts             []string // COMPONENT=NAME
	RegisterAPI       bool     // make the APIServices
	CAFile            string   // with the authorities of another source; empty: certificates are made here
	Lifetime          time.Duration
	AuthorityLifetime time.Duration
	Overlap           time.Duration
	serving.Health    // whose certificate is a file with CAFile alone
	Log               *slog.Logger
}

const (
	defaultNamespace         = "credence-system"
	defaultClusterDomain     = "cluster.local"
	defaultLifetime          = 30 * 24 * time.Hour
	defaultAuthorityLifetime = 365 * 24 * time.Hour
	defaultOverlap           = 10 * time.Minute
	minOverlap               = time.Second
)

// check fills in what is unset, and names the first flag that is wrong. It returns the certificates to keep, too: none with CAFile.
func (c Config) check() (Config, []certificates.Wanted, error) {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	c.ClusterDomain = cmp.Or(c.ClusterDomain, defaultClusterDomain)
	c.BindAddress = cmp.Or(c.BindAddress, "127.0.0.1")
	c.Lifetime = cmp.Or(c.Lifetime, defaultLifetime)
	c.AuthorityLifetime = cmp.Or(c.AuthorityLifetime, defaultAuthorityLifetime)
	c.Overlap = cmp.Or(c.Overlap, defaultOverlap)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Components == nil {
		c.Components = certificates.Components()
	}
	if c.CAFile != "" {
		if !c.RegisterAPI {
			return c, nil, errors.New("--ca-file is for --register-api, and nothing else is done with it: give both")
		}
		return c, nil, c.Health.Complete()
	}
	switch {
	case c.TLSCertFile+c.TLSPrivateKeyFile != "":
		return c, nil, errors.New("--tls-cert-file, --tls-private-key-file: the certificate of this program is made here: leave them out, or give --ca-file with the authorities of another source")
	case net.ParseIP(c.BindAddress) == nil:
		return c, nil, fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", c.BindAddress)
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return c, nil, fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", c.HealthPort)
	case len(validation.IsDNS1123Subdomain(c.ClusterDomain)) > 0:
		return c, nil, fmt.Errorf("--cluster-domain %q is not a DNS name: give one, such as cluster.local", c.ClusterDomain)
	case c.Overlap < minOverlap:
		return c, nil, fmt.Errorf("--overlap %s is too short: give %s or more", c.Overlap, minOverlap)
	case c.Lifetime < 6*c.Overlap:
		return c, nil, fmt.Errorf("--certificate-lifetime %s is too short: give six times --overlap or more, %s", c.Lifetime, 6*c.Overlap)
	case c.AuthorityLifetime < 3*c.Lifetime:
		return c, nil, fmt.Errorf("--authority-lifetime %s is too short: give three times --certificate-lifetime or more, %s", c.AuthorityLifetime, 3*c.Lifetime)
	}
	hosts := certificates.Hosts{Namespace: c.Namespace, ClusterDomain: c.ClusterDomain, More: map[string][]string{}}
	for _, given := range c.Hosts {
		component, host, found := strings.Cut(given, "=")
		if !found || net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return c, nil, fmt.Errorf("--host %q is not COMPONENT=NAME: give one, such as credence-discovery=id.example.com", given)
		}
		hosts.More[component] = append(hosts.More[component], host)
	}
	// Its own is one of them in any case.
	wanted, err := certificates.All(slices.Concat(c.Components, []string{certificates.Own}), hosts, c.Lifetime)
	if err != nil {
		return c, nil, fmt.Errorf("--components, --host: %w", err)
	}
	return c, wanted, nil
}
