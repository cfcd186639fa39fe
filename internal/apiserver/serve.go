package apiserver

//lint:file-ignore SA1019 net/http serves HTTP/2 on no connection but its own, whose frames can't be followed; k8s.io/apiserver uses this package, too

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/apiserver/goaway"
	"golang.org/x/net/http2"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

const (
	idleTimeout       = 90 * time.Second
	readHeaderTimeout = 30 * time.Second
	maxHeaderBytes    = 1 << 20
	// maxStreams of a connection, unless a flag has another number; streamBuffer holds the body of most requests.
	maxStreams   = 100
	streamBuffer = 256 << 10
	// leaveTimeout is how long clients may take to use other connections, and closeTimeout for connections on which nothing is served.
	leaveTimeout = time.Second
	closeTimeout = 2 * time.Second
)

// Run serves until ctx is done, and then until all requests are answered. The generic server is run too, but it accepts no connection: it
// would drop requests that arrive while it stops. Here the clients leave first.
func (s *Server) Run(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	front, err := newFront(serving, s.GenericAPIServer)
	if err != nil {
		return err
	}
	s.SecureServingInfo = &genericapiserver.SecureServingInfo{Listener: &silence{address: front.listener.Addr(), closed: make(chan struct{})}}
	prepared := s.PrepareRun()
	generic, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- front.serve() }()
	ended := make(chan error, 1)
	go func() { ended <- prepared.RunWithContext(generic) }()
	select {
	case err = <-failed:
	case err = <-ended:
		ended <- nil
	case <-ctx.Done():
		front.leave()
	}
	stop()
	return errors.Join(err, <-ended, front.close())
}

// front is what listens.
type front struct {
	listener    net.Listener
	http        *http.Server
	connections goaway.Connections
}

func newFront(ctx context.Context, s *genericapiserver.GenericAPIServer) (*front, error) {
	settings := s.SecureServingInfo
	f := &front{listener: settings.Listener, http: &http.Server{
		Handler: s.Handler, TLSConfig: tlsConfig(ctx, settings), MaxHeaderBytes: maxHeaderBytes, IdleTimeout: idleTimeout, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: log.New(handshakes{}, "", 0),
	}}
	if settings.DisableHTTP2 {
		return f, nil
	}
	streams := maxStreams
	if settings.HTTP2MaxStreamsPerConnection > 0 {
		streams = settings.HTTP2MaxStreamsPerConnection
	}
	err := f.connections.Configure(f.http, &http2.Server{
		IdleTimeout: idleTimeout, MaxConcurrentStreams: uint32(streams),
		MaxUploadBufferPerStream: streamBuffer, MaxReadFrameSize: streamBuffer, MaxUploadBufferPerConnection: int32(streamBuffer * streams),
	})
	if err != nil {
		return nil, fmt.Errorf("set up HTTP/2: %w", err)
	}
	return f, nil
}

// tlsConfig follows the files of certificates and of authorities until ctx is done. Client certificates are for authenticators to verify.
func tlsConfig(ctx context.Context, s *genericapiserver.SecureServingInfo) *tls.Config {
	config := &tls.Config{
		MinVersion: max(s.MinTLSVersion, tls.VersionTLS12), CipherSuites: s.CipherSuites, CurvePreferences: s.CurvePreferences,
		NextProtos: []string{http2.NextProtoTLS, "http/1.1"},
	}
	if s.DisableHTTP2 {
		config.NextProtos = []string{"http/1.1"}
	}
	if s.ClientCA != nil {
		config.ClientAuth = tls.RequestClientCert
	}
	current := dynamiccertificates.NewDynamicServingCertificateController(config, s.ClientCA, s.Cert, s.SNICerts, nil)
	follow := func(name string, content dynamiccertificates.Notifier) {
		content.AddListener(current)
		if runner, ok := content.(dynamiccertificates.ControllerRunner); ok {
			if err := runner.RunOnce(ctx); err != nil {
				klog.Warningf("%s is not read yet: %v", name, err)
			}
			go runner.Run(ctx, 1)
		}
	}
	if s.ClientCA != nil {
		follow("the authority of clients", s.ClientCA)
	}
	if s.Cert != nil {
		follow("the serving certificate", s.Cert)
	}
	for _, content := range s.SNICerts {
		follow("a serving certificate", content)
	}
	if err := current.RunOnce(); err != nil {
		klog.Warningf("certificates are not read yet: %v", err)
	}
	go current.Run(1, ctx.Done())
	config.GetConfigForClient = current.GetConfigForClient
	return config
}

func (f *front) serve() error {
	if err := f.http.ServeTLS(f.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", f.listener.Addr(), err)
	}
	return nil
}

// leave has clients use other connections. Long requests, such as watches, keep theirs until they end.
func (f *front) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	f.connections.Notify()
	f.connections.Left(ctx)
}

func (f *front) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if f.http.Shutdown(ctx) != nil {
		return f.http.Close()
	}
	return nil
}

// handshakes counts connections that were not made, and logs all else: anyone can begin one.
type handshakes struct{}

func (handshakes) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "TLS handshake error") {
		metrics.TLSHandshakeErrors.Inc()
		klog.V(5).Info(string(line))
	} else {
		klog.Warning(string(line))
	}
	return len(line), nil
}

// silence is a listener that accepts nothing.
type silence struct {
	address net.Addr
	closed  chan struct{}
	close   sync.Once
}

func (s *silence) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

func (s *silence) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

func (s *silence) Addr() net.Addr { return s.address }
