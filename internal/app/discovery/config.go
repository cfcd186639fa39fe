package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/discovery"
)

// Config is what the discovery server needs. Issuer, one source of documents, the certificate and its key are required;
// everything else works at its zero value.
type Config struct {
	Issuer string // https URL; see identity.ParseIssuer

	DocumentsDir       string // folder with openid-configuration.json and jwks.json
	DocumentsConfigMap string // namespace/name of a ConfigMap with the same two keys
	Kubeconfig         string // of the API that has the ConfigMap; empty: the pod's own
	DocumentsCache     string // folder that keeps the ConfigMap's last good documents; empty: none

	BindAddress       string // empty: 127.0.0.1
	Port              int    // 0: a free one, which is logged
	HealthPort        int    // 0: no health server
	AnonymousMetrics  bool   // /metrics is for all
	TLSCertFile       string
	TLSPrivateKeyFile string
	MaxAge            time.Duration // of Cache-Control, whole seconds; 0: 1h

	Listener       net.Listener // takes the place of BindAddress and Port
	HealthListener net.Listener // takes the place of BindAddress and HealthPort
	Log            *slog.Logger // nil: slog.Default()
	Now            func() time.Time
}

const (
	defaultBindAddress = "127.0.0.1"
	defaultPort        = 8443
	// maxMaxAge is the shortest time for which a new key is published before it signs: no relying party may keep a key
	// set for longer.
	maxMaxAge = 24 * time.Hour
)

// complete fills in what is unset.
func (c Config) complete() Config {
	c.BindAddress = cmp.Or(c.BindAddress, defaultBindAddress)
	c.MaxAge = cmp.Or(c.MaxAge, discovery.DefaultMaxAge)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate names the first flag that is missing, wrong, or contradicts another, with what to do.
func (c Config) validate() error {
	switch {
	case c.Issuer == "":
		return errors.New("--issuer is missing: give the https URL that tokens name as their issuer")
	case c.DocumentsDir == "" && c.DocumentsConfigMap == "":
		return errors.New("a source of documents is missing: give either --documents-dir or --documents-configmap")
	case c.DocumentsDir != "" && c.DocumentsConfigMap != "":
		return errors.New("--documents-dir and --documents-configmap exclude each other: give one of them")
	case c.DocumentsConfigMap == "" && c.Kubeconfig != "":
		return errors.New("--kubeconfig needs --documents-configmap: a documents folder is read without an API")
	case c.DocumentsConfigMap == "" && c.DocumentsCache != "":
		return errors.New("--documents-cache needs --documents-configmap: a documents folder is not cached")
	case c.TLSCertFile == "":
		return errors.New("--tls-cert-file is missing: give the file of the serving certificate")
	case c.TLSPrivateKeyFile == "":
		return errors.New("--tls-private-key-file is missing: give the file of the serving certificate's private key")
	case net.ParseIP(c.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", c.BindAddress)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("--port %d is not a port: give 1 to 65535, or 0 for a free one", c.Port)
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", c.HealthPort)
	case c.HealthPort != 0 && c.HealthPort == c.Port:
		return fmt.Errorf("--health-port %d is the same as --port: give another one", c.HealthPort)
	case c.MaxAge < time.Second || c.MaxAge > maxMaxAge || c.MaxAge%time.Second != 0:
		return fmt.Errorf("--max-age %s must be whole seconds from 1s to %s", c.MaxAge, maxMaxAge)
	}
	if c.DocumentsConfigMap != "" {
		if _, _, err := splitName(c.DocumentsConfigMap); err != nil {
			return err
		}
	}
	return nil
}

func splitName(configMap string) (namespace, name string, err error) {
	namespace, name, _ = strings.Cut(configMap, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", fmt.Errorf("--documents-configmap %q must be NAMESPACE/NAME of a ConfigMap", configMap)
	}
	return namespace, name, nil
}
