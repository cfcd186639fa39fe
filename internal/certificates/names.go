package certificates

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/pki"
)

// AuthoritySecret is the name of the Secret with the authority, and of the authority.
const AuthoritySecret = "credence-ca"

// Own is the component that keeps the certificates. It has one, too.
const Own = "credence-certificates"

// Components returns the names of all that serve. A Service that one has bears its name.
func Components() []string {
	return []string{"credence-apiserver", "credence-webhook", "credence-discovery", "credence-controller", "credence-agent", "credence-binder", "credence-profiles", "credence-registry", Own}
}

// Wanted is a certificate that must be there.
type Wanted struct {
	Name    string // of its component
	Request pki.Request
}

// Secret is the name of the Secret that has it.
func (w Wanted) Secret() string { return SecretOf(w.Name) }

// SecretOf returns the name of the Secret with the certificate of a component.
func SecretOf(component string) string { return component + "-tls" }

// Hosts are the names by which components are reached.
type Hosts struct {
	Namespace     string
	ClusterDomain string              // such as cluster.local
	More          map[string][]string // by component: DNS names and IP addresses
}

// All returns the certificates of components, by the names of their Services, of this machine and of hosts.More.
func All(components []string, hosts Hosts, lifetime time.Duration) ([]Wanted, error) {
	var all []Wanted
	for _, name := range components {
		if !slices.Contains(Components(), name) {
			return nil, fmt.Errorf("unknown component %q: give one of %v", name, Components())
		}
		if slices.ContainsFunc(all, func(w Wanted) bool { return w.Name == name }) {
			continue
		}
		service := name + "." + hosts.Namespace
		request := pki.Request{
			CommonName: name,
			Hosts:      []string{service + ".svc", service, name, service + ".svc." + hosts.ClusterDomain, "localhost"},
			IPs:        []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
			Lifetime:   lifetime,
		}
		for _, host := range hosts.More[name] {
			if ip := net.ParseIP(host); ip != nil {
				request.IPs = append(request.IPs, ip)
			} else {
				request.Hosts = append(request.Hosts, host)
			}
		}
		all = append(all, Wanted{name, request})
	}
	for name := range hosts.More {
		if !slices.ContainsFunc(all, func(w Wanted) bool { return w.Name == name }) {
			return nil, fmt.Errorf("host of %q: it has no certificate here", name)
		}
	}
	return all, nil
}
