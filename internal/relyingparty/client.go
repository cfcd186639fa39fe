package relyingparty

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
)

// Trusting returns a client that trusts these authorities; nil: those of this machine.
func Trusting(roots *x509.CertPool) *http.Client {
	transport := trusting(roots)
	transport.Proxy = http.ProxyFromEnvironment
	return &http.Client{Transport: transport}
}

// TrustingAt is as Trusting, but all requests go to address, HOST or HOST:PORT, which must show a certificate for HOST. The URLs of the
// requests stay as they are: the documents of an issuer can be read before its name leads to them.
func TrustingAt(address string, roots *x509.CertPool) *http.Client {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]") // an IPv6 address may stand in brackets
		address = net.JoinHostPort(host, "443")
	}
	transport := trusting(roots)
	transport.TLSClientConfig.ServerName = host
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return &http.Client{Transport: transport}
}

func trusting(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2: true,
	}
}
