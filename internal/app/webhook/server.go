package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/credence-id/credence/internal/discovery/source"
)

// Limits of a connection. Reviews are up to megabytes, and are answered within what the API server waits at most, 30 seconds.
const (
	headerTimeout   = 5 * time.Second
	reviewTimeout   = 35 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 10 * time.Second
)

// server is the listener of reviews, which may ask for a client certificate.
type server struct {
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

func newServer(listener net.Listener, handler http.Handler, pair *source.KeyPair, clientCAFile string, log *slog.Logger) (*server, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	if clientCAFile != "" {
		authorities, err := authoritiesOf(clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authorities
	}
	log = log.With("server", "webhook")
	return &server{listener: listener, log: log, http: &http.Server{
		Handler: handler, DisableGeneralOptionsHandler: true, TLSConfig: config,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: reviewTimeout, WriteTimeout: reviewTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
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

// run serves until ctx is done, and then answers what is in flight.
func (s *server) run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.ServeTLS(s.listener, "", "") }()
	s.log.Info("listening", "address", s.listener.Addr().String())
	select {
	case err := <-stopped:
		return fmt.Errorf("serve reviews on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("reviews were cut off at shutdown", "error", err)
		_ = s.http.Close()
	}
	if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stop serving reviews on %s: %w", s.listener.Addr(), err)
	}
	return nil
}
