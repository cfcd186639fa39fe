package clientgo

import (
	"errors"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
)

// ConfigFor returns a copy of c that presents the credentials of source: for those that no program hands out, such as a client
// certificate whose key is in a PKCS#11 token. Configs with the same source share its connections if they are the same otherwise too.
// A c that has credentials of its own, of whatever kind, is an error: it would not be clear who the client is.
func ConfigFor(source *execcredential.Source, c *rest.Config) (*rest.Config, error) {
	switch {
	case c == nil:
		return nil, errNoConfig
	case source == nil:
		return nil, errors.New("execcredential/clientgo: the source is nil")
	}
	if c.ExecProvider != nil || c.AuthProvider != nil || static(c) || len(c.CertData) > 0 || c.CertFile != "" || len(c.KeyData) > 0 || c.KeyFile != "" {
		return nil, errors.New("execcredential/clientgo: the config has credentials of its own; take them away, with rest.AnonymousClientConfig")
	}
	copied := rest.CopyConfig(c)
	p := presenter{source: source, ownTransport: c.Transport != nil}
	copied.WrapTransport = p.around(c.WrapTransport)
	return copied, nil
}
