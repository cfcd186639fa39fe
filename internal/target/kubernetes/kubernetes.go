// Package kubernetes is the API of another Kubernetes cluster, which trusts the issuer by its authentication configuration.
// In goes a providerConfig with the server, out comes a kubeconfig. It makes no requests.
package kubernetes

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Type is the type of target system.
const Type = "kubernetes"

// fields are those of the providerConfig.
var fields = []string{"server", "certificateAuthorityData", "namespace"}

// System is another Kubernetes cluster.
func System() target.System {
	return target.System{
		Name:    Type,
		Adapter: Adapter{},
		Short:   target.Short{Fields: fields},
		Trust:   trust.Side{Any: true, Bearers: true, Commands: writeCommands, Terraform: writeTerraform, Provider: writeProvider},
		Errors:  refusals,
	}
}

// Adapter is another Kubernetes cluster.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter: RS256 first, as an API server that is set up by flags takes nothing else by default.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.RS256, identity.ES256}}
}

// Parse implements target.Adapter. Without a providerConfig there is no kubeconfig, but the token is of use all the same.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	if target.Empty(providerConfig) {
		return config{path: path}, nil
	}
	read := target.Read(providerConfig, Type, path, fields...)
	c := config{
		path:      path,
		server:    read.Required("server", "must be the URL of an API server, such as https://api.example.com:6443: https, at most 2048 characters, without user, query and fragment", isServer),
		namespace: read.Optional("namespace", "must be the name of a namespace", isNamespace),
	}
	read.Optional("certificateAuthorityData", "must be the base64 form, in one line of at most 32 KiB, of one or more certificates in PEM and nothing else", func(data string) bool {
		var err error
		c.authorities, err = certificates(data)
		return err == nil
	})
	if errs := read.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

var server = regexp.MustCompile(`\Ahttps://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w.~/-]*)?\z|\Ahttps://\[[0-9A-Fa-f:.]+\](?::\d{1,5})?(?:/[\w.~/-]*)?\z`)

func isServer(text string) bool {
	const maxLength = 2048
	if len(text) > maxLength || !server.MatchString(text) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || strings.Trim(u.Hostname(), ".-") != u.Hostname() || u.Hostname() == "" {
		return false
	}
	port, err := strconv.Atoi(u.Port())
	return u.Port() == "" || err == nil && port > 0 && port <= 65535
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

type config struct {
	path              *field.Path
	server, namespace string
	authorities       []byte
}

const kubeconfigKey = "kubeconfig"

// Injection implements target.Config.
func (c config) Injection(place target.Place) target.Injection {
	if c.server == "" {
		return target.Injection{}
	}
	return target.Injection{
		Keys:   []target.Key{{Name: kubeconfigKey, Content: c.kubeconfig(place)}},
		Mounts: []string{kubeconfigKey},
		Env:    []target.Variable{{Name: "KUBECONFIG", Value: place.File(kubeconfigKey)}},
	}
}

// Account implements target.Config.
func (c config) Account() []target.Fixed {
	return []target.Fixed{{Path: c.path.Child("server"), Value: c.server, Host: true}}
}

// Audiences implements target.Config. The cluster's authentication configuration lists the audiences that it takes.
func (config) Audiences() []string { return nil }
