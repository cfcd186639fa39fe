// Package serving runs the HTTPS listeners of the programs. In go listeners, handlers and a certificate that is reloaded; out
// come servers with the limits of this project, which answer what is in flight before they end.
package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of a connection, unless a Server is Patient. Requests have no body and answers are small: a slower client holds a
// connection for nothing.
const (
	readTimeout     = 5 * time.Second // one for header and all: a second one is a second deadline for each request
	writeTimeout    = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 10 * time.Second
	leaveTimeout    = 2 * time.Second
)

// Certificate is what a Server shows; it may be another one for each connection.
type Certificate interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Server is one HTTPS listener.
type Server struct {
	name     string
	listener net.Listener
	http     *http.Server
	kept     kept
	leave    time.Duration // for clients to leave before the end
	log      *slog.Logger
}

// New returns a Server that answers with handler, under the name that its log lines have. Listening has begun already, so
// that a busy port is an error before anything runs.
func New(name string, listener net.Listener, handler http.Handler, pair Certificate, log *slog.Logger) *Server {
	log = log.With("server", name)
	s := &Server{
		name:     name,
		listener: listener,
		leave:    leaveTimeout,
		log:      log,
		http: &http.Server{
			DisableGeneralOptionsHandler: true,
			TLSConfig: &tls.Config{
				MinVersion:     tls.VersionTLS12,
				CipherSuites:   tls12Suites(),
				GetCertificate: pair.GetCertificate,
				NextProtos:     []string{"h2", "http/1.1"},
			},
			ReadHeaderTimeout: readTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	s.http.Handler, s.http.ConnState = s.kept.leaveBy(handler), s.kept.follow
	return s
}

// Patient gives each request and its answer so long instead: for bodies, and for answers that take others' time.
func (s *Server) Patient(timeout time.Duration) *Server {
	s.http.ReadTimeout, s.http.WriteTimeout = timeout, timeout
	return s
}

// RequireClients refuses connections without a certificate of the authorities at that time, with this common name if there is one.
func (s *Server) RequireClients(authorities func() *x509.CertPool, name string) *Server {
	base := s.http.TLSConfig
	base.ClientAuth = tls.RequireAndVerifyClientCert
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = authorities()
		return now, nil
	}
	if name != "" {
		// Of resumed sessions too, unlike VerifyPeerCertificate.
		base.VerifyConnection = func(state tls.ConnectionState) error {
			if got := state.PeerCertificates[0].Subject.CommonName; got != name {
				return fmt.Errorf("a client certificate of %q is not accepted", got)
			}
			return nil
		}
	}
	return s
}

// tls12Suites are those of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3 has no others.
func tls12Suites() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// Address is where it listens.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Close gives up a Server that does not run.
func (s *Server) Close() { _ = s.listener.Close() }

// Run serves until ctx is done, has clients leave for a short time, and then answers what is in flight for at most shutdownTimeout.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.ServeTLS(s.listener, "", "") }()
	s.log.Info("listening", "address", s.listener.Addr().String())

	select {
	case err := <-stopped:
		return fmt.Errorf("serve %s on %s: %w", s.name, s.listener.Addr(), err)
	case <-ctx.Done():
	}
	select {
	case <-s.kept.leave():
	case <-time.After(s.leave):
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
