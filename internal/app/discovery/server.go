package discovery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/credence-id/credence/internal/discovery/source"
)

// Limits of a connection. Requests have no body and answers are small: whoever is slower holds a connection for nothing.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = 10 * time.Second
)

// server is one HTTPS listener.
type server struct {
	name     string
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

func newServer(name string, listener net.Listener, handler http.Handler, pair *source.KeyPair, log *slog.Logger) *server {
	log = log.With("server", name)
	return &server{
		name:     name,
		listener: listener,
		log:      log,
		http: &http.Server{
			Handler:                      handler,
			DisableGeneralOptionsHandler: true,
			TLSConfig: &tls.Config{
				MinVersion:     tls.VersionTLS12,
				CipherSuites:   tls12Suites(),
				GetCertificate: pair.GetCertificate,
				NextProtos:     []string{"h2", "http/1.1"},
			},
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// tls12Suites are those of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3 has no others.
func tls12Suites() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// run serves until ctx is done, and then answers what is in flight for at most shutdownTimeout.
func (s *server) run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.ServeTLS(s.listener, "", "") }()
	s.log.Info("listening", "address", s.listener.Addr().String())

	select {
	case err := <-stopped:
		return fmt.Errorf("serve %s on %s: %w", s.name, s.listener.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off at shutdown", "error", err)
		_ = s.http.Close()
	}
	if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stop %s on %s: %w", s.name, s.listener.Addr(), err)
	}
	return nil
}
