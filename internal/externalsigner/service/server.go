package service

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	externaljwt "k8s.io/externaljwt/apis/v1"
)

const (
	// maxRequestSize is larger than any claims that are signed.
	maxRequestSize = 2 * maxClaimsSize
	// shutdownTimeout is for requests in flight.
	shutdownTimeout = 10 * time.Second
)

// Serve answers on a listener until ctx is done, and then what is in flight. The listener is closed.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestSize))
	externaljwt.RegisterExternalJWTSignerServer(server, s)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve the external signer API on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	deadline := time.AfterFunc(shutdownTimeout, server.Stop)
	defer deadline.Stop()
	server.GracefulStop()
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop the external signer API on %s: %w", listener.Addr(), err)
	}
	return nil
}
