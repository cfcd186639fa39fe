package webhook

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/discovery/source"
)

// reviewTimeout bounds a review, of up to megabytes: the API server waits 30 seconds for an answer at most.
const reviewTimeout = 35 * time.Second

// newServer is the listener of reviews, which may request a client certificate.
func newServer(listener net.Listener, handler http.Handler, pair *source.KeyPair, c Config) (*serving.Server, error) {
	server := serving.New("webhook", listener, handler, pair, c.Log).Patient(reviewTimeout)
	if c.ClientCAFile == "" {
		return server, nil
	}
	authorities, err := authoritiesOf(c.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	return server.RequireClients(authorities, c.ClientName), nil
}

func authoritiesOf(file string) (*x509.CertPool, error) {
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
