package relyingparty

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// Trusting returns a client that trusts these authorities; nil: those of this machine.
func Trusting(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
}
