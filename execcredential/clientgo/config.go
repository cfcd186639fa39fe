package clientgo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
)

// Config returns a copy of c whose ExecProvider runs in pool. As with client-go, static credentials in c win: then, and if c has no
// ExecProvider, the copy is c without one. Configs that ask for the same credential share it, and their connections if they are the
// same otherwise too.
//
// A relative path in ExecProvider.Command is refused; clientcmd makes it absolute if the kubeconfig came from a file. Errors are
// *execcredential.ConfigError, or what reading the certificate authority gave; and *execcredential.PlainHTTPError for a host without
// TLS that Options.PlainHTTPHosts of the pool does not name. client-go sends tokens to such a host, but never gets one with a plugin
// from clientcmd.
func Config(pool *execcredential.Pool, c *rest.Config) (*rest.Config, error) {
	if c == nil {
		return nil, errNoConfig
	}
	if c.ExecProvider != nil && c.AuthProvider != nil {
		return nil, errors.New("execcredential/clientgo: ExecProvider and AuthProvider can't be used together")
	}
	// rest.CopyConfig writes to the ExecProvider that original and copy share.
	without := *c
	without.ExecProvider = nil
	copied := rest.CopyConfig(&without)
	if c.ExecProvider == nil || static(c) {
		return copied, nil
	}
	config, err := execConfig(c)
	if err != nil {
		return nil, err
	}
	source, err := pool.Source(config)
	if err != nil {
		return nil, err
	}
	p := presenter{source: source, ownTransport: c.Transport != nil}
	copied.WrapTransport = p.around(c.WrapTransport)
	return copied, nil
}

var errNoConfig = errors.New("execcredential/clientgo: the rest.Config is nil")

// static reports whether c has credentials that client-go prefers to a plugin.
func static(c *rest.Config) bool {
	certificate, key := len(c.CertData) > 0 || c.CertFile != "", len(c.KeyData) > 0 || c.KeyFile != ""
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.Username != "" || certificate && key
}

func execConfig(c *rest.Config) (execcredential.Config, error) {
	p := c.ExecProvider
	config := execcredential.Config{
		Command:            p.Command,
		Args:               p.Args,
		APIVersion:         p.APIVersion,
		InteractiveMode:    execcredential.InteractiveMode(p.InteractiveMode),
		InstallHint:        p.InstallHint,
		ProvideClusterInfo: p.ProvideClusterInfo,
		Policy:             execcredential.Policy{Type: execcredential.PolicyType(p.PluginPolicy.PolicyType)},
	}
	for _, e := range p.Env {
		config.Env = append(config.Env, execcredential.EnvVar{Name: e.Name, Value: e.Value})
	}
	if p.StdinUnavailable {
		config.StdinUnavailable = p.StdinUnavailableMessage
		config.StdinUnavailable = cmp.Or(config.StdinUnavailable, "it is used for something else")
	}
	if list := p.PluginPolicy.Allowlist; list != nil {
		config.Policy.Allowlist = make([]execcredential.AllowedProgram, 0, len(list))
		for i, entry := range list {
			command, err := allowedCommand(entry)
			if err != nil {
				return execcredential.Config{}, fmt.Errorf("execcredential/clientgo: entry %d of the allowlist: %w", i, err)
			}
			config.Policy.Allowlist = append(config.Policy.Allowlist, execcredential.AllowedProgram{Command: command})
		}
	}
	if !p.ProvideClusterInfo {
		// The program does not get it, but the pool checks whether the server is reached over TLS.
		if server, _, err := rest.DefaultServerUrlFor(c); err == nil && c.Host != "" {
			config.Cluster.Server = server.String()
		}
		return config, nil
	}
	cluster, err := rest.ConfigToExecCluster(c)
	if err != nil {
		return execcredential.Config{}, fmt.Errorf("execcredential/clientgo: describe the cluster: %w", err)
	}
	config.Cluster = execcredential.Cluster{
		Server:                   cluster.Server,
		TLSServerName:            cluster.TLSServerName,
		InsecureSkipTLSVerify:    cluster.InsecureSkipTLSVerify,
		CertificateAuthorityData: cluster.CertificateAuthorityData,
		ProxyURL:                 cluster.ProxyURL,
		DisableCompression:       cluster.DisableCompression,
	}
	if config.Cluster.Extension, err = extension(p); err != nil {
		return execcredential.Config{}, fmt.Errorf("execcredential/clientgo: write the cluster's extension: %w", err)
	}
	return config, nil
}

// allowedCommand reads an api.AllowlistEntry by the name of its field, which client-go 0.35 calls Name, and later versions Command. A field of another
// name narrows what may run in a way that is not known here: an entry that sets one is an error.
func allowedCommand(entry any) (string, error) {
	var command string
	fields := reflect.ValueOf(entry)
	for i := range fields.NumField() {
		name, value := fields.Type().Field(i).Name, fields.Field(i)
		switch {
		case value.IsZero():
		case name == "Command", name == "Name":
			command = value.String()
		default:
			return "", fmt.Errorf("%s is not supported", name)
		}
	}
	return command, nil
}

// extension is the JSON of ExecProvider.Config. An extension that clientcmd read from a kubeconfig is JSON already.
func extension(p *api.ExecConfig) (json.RawMessage, error) {
	switch config := p.Config.(type) {
	case nil:
		return nil, nil
	case *runtime.Unknown:
		return json.RawMessage(config.Raw), nil
	default:
		return json.Marshal(config)
	}
}
