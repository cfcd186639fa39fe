package cli

import (
	"crypto/tls"
	"net/http"
)

// newTransport returns a transport for the public documents of issuers.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
}
