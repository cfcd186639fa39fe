package webhook

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/filewatch"
)

// reviewTimeout bounds a review, of up to megabytes: the API server waits 30 seconds for an answer at most.
const reviewTimeout = 35 * time.Second

// newServer is the listener of reviews, which may request a client certificate.
func newServer(listener net.Listener, handler http.Handler, pair *source.KeyPair, c Config) (*serving.Server, *authorities, error) {
	server := serving.New("webhook", listener, handler, pair, c.Log).Patient(reviewTimeout)
	if c.ClientCAFile == "" {
		return server, nil, nil
	}
	clients := &authorities{file: c.ClientCAFile, log: c.Log}
	if err := clients.load(); err != nil {
		return nil, nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	return server.RequireClients(clients.current.Load, c.ClientName), clients, nil
}

// authorities are those of a file, whose certificates clients show. The last good ones stay in use.
type authorities struct {
	file    string
	log     *slog.Logger
	current atomic.Pointer[x509.CertPool]
}

// Run follows changes of the file until ctx is done.
func (a *authorities) Run(ctx context.Context) error {
	refused := ""
	filewatch.Run(ctx, filewatch.Interval, func() {
		switch err := a.load(); {
		case err == nil:
			refused = ""
		case err.Error() != refused:
			refused = err.Error()
			a.log.ErrorContext(ctx, "authorities of clients not read, the last good ones stay in use", "error", err)
		}
	}, a.file)
	return nil
}

func (a *authorities) load() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM", a.file)
	}
	a.current.Store(pool)
	return nil
}
