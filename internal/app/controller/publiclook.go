package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/identity"
)

// publicLook looks where relying parties do, so that a key which a bucket or a CDN does not show is never used.
func publicLook(c checked) (look, error) {
	roots, err := authorities(c.PublishCheckCAFile)
	if err != nil {
		return look{}, fmt.Errorf("--publish-check-ca-file: %w", err)
	}
	prober := comparison.Prober{
		Issuer: c.issuer,
		URL:    c.PublishCheckURL,
		Client: &http.Client{
			Timeout: requestTimeout,
			// Each look is a connection of its own: one that is kept may lead to a server that others are not sent to any more.
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			},
		},
	}
	return look{from: c.PublishCheckURL, keys: func(ctx context.Context) ([]identity.KeyID, error) { return prober.Probe(ctx) }}, nil
}

// authorities returns those of a file; nil, which stands for those of this machine, where none is named.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}
