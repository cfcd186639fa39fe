package execcredential

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// PlainHTTPError reports that a server is not reached over TLS, so that every host on the way could read a token: nothing was sent to it, and
// no program was run for it. Kubernetes' own clients do not run programs for such servers either.
type PlainHTTPError struct {
	Server string // scheme and host, for example "http://10.0.0.1:8080"
	// CertificateOnly is set if the server may have a token, and the credential has none: a client certificate can't be shown without
	// TLS, and without either the server would take the request for another client's.
	CertificateOnly bool
}

func (e *PlainHTTPError) Error() string {
	if e.CertificateOnly {
		return fmt.Sprintf("exec credential: %s is not reached over TLS, and the credential is a client certificate without a token, which can't be shown there: use an https URL", e.Server)
	}
	return fmt.Sprintf("exec credential: %s is not reached over TLS, so no program is run and nothing is sent: use an https URL; "+
		"or, for a server of this machine such as a proxy, name its host and port in Options.PlainHTTPHosts (with LoadKubeconfig, also set Selection.PlainHTTP)", e.Server)
}

// plainHTTPHosts are the hosts of Options.PlainHTTPHosts, with their ports.
type plainHTTPHosts map[string]bool

// newPlainHTTPHosts returns a *ConfigError for what is not a host.
func newPlainHTTPHosts(hosts []string) (plainHTTPHosts, error) {
	allowed := plainHTTPHosts{}
	for i, host := range hosts {
		u, err := url.Parse("http://" + host)
		if err != nil || u.Host != host || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") && host[0] != '[' || strings.Contains(host, "*") {
			return nil, &ConfigError{Field: fmt.Sprintf("plainHTTPHosts[%d]", i), Reason: fmt.Sprintf("is %q, which is not a host, or a host and a port, like 127.0.0.1:8001", clip(host))}
		}
		allowed[hostAndPort(u)] = true
	}
	return allowed, nil
}

// check returns a *PlainHTTPError if no credential may go to u. A nil URL passes, as nothing is sent to it.
func (p plainHTTPHosts) check(u *url.URL) error {
	if overTLS(u) || p[hostAndPort(u)] {
		return nil
	}
	return &PlainHTTPError{Server: plainServer(u)}
}

func overTLS(u *url.URL) bool { return u == nil || u.Scheme == "https" || u.Scheme == "wss" }

// plainServer is what an error may show of u, which can hold a password.
func plainServer(u *url.URL) string { return clip(u.Scheme) + "://" + clip(u.Host) }

func hostAndPort(u *url.URL) string {
	port := cmp.Or(u.Port(), "80")
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// url is how Kubernetes' own clients understand Server. One without a scheme is reached over TLS if there are certificate authorities,
// or if none are wanted. It is nil for what is no URL, to which nothing can be sent anyway.
func (c Cluster) url() *url.URL {
	if u, err := url.Parse(c.Server); err == nil && u.Scheme != "" && u.Host != "" {
		return u
	}
	scheme := "http://"
	if len(c.CertificateAuthorityData) > 0 || c.InsecureSkipTLSVerify {
		scheme = "https://"
	}
	u, err := url.Parse(scheme + c.Server)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}
