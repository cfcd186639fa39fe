package etcd

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// closeTimeout is what Close waits for clients that do not hang up. Leaving
// earlier loses nothing: the log on disk is complete at any time.
const closeTimeout = 2 * time.Second

// Server is a running etcd.
type Server struct {
	etcd    *embed.Etcd
	dataDir string
	sockets sockets
	log     zap.AtomicLevel
	end     ending
}

// Start runs etcd on dataDir and returns when it answers. Its sockets are in
// socketDir, or in a temporary directory when that path is too long for one.
func Start(ctx context.Context, dataDir, socketDir string) (*Server, error) {
	socks, err := openSockets(socketDir)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	s := &Server{dataDir: dataDir, sockets: socks, log: zap.NewAtomicLevelAt(zap.WarnLevel), end: make(ending, 1)}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("start etcd: %w", s.explain(err))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	type outcome struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan outcome, 1)
	// On its own, because it ends without a result when it logs a fatal entry.
	go func() {
		etcd, err := embed.StartEtcd(config(s.dataDir, s.sockets, logger(s.log, s.end)))
		started <- outcome{etcd, err}
	}()
	select {
	case got := <-started:
		if got.err != nil {
			return got.err
		}
		s.etcd = got.etcd
	case err := <-s.end:
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return err
	case err := <-s.end:
		return err
	case <-s.etcd.Server.StopNotify():
		return errors.New("it stopped")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Endpoint is the client URL, unix:///….
func (s *Server) Endpoint() string {
	return "unix://" + s.sockets.path(clientSocket)
}

// Wait returns the reason when etcd can no longer serve, or nil when ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case err := <-s.etcd.Err():
		return s.explain(err)
	case err := <-s.end:
		return s.explain(err)
	case <-ctx.Done():
		return nil
	}
}

// RemoveSockets removes what a process that just ends would leave behind.
func (s *Server) RemoveSockets() {
	s.sockets.remove()
}

// Close stops etcd and removes its sockets.
func (s *Server) Close() {
	defer s.sockets.remove()
	if s.etcd == nil {
		return
	}
	// etcd reports every listener that we close as an error.
	s.log.SetLevel(zap.FatalLevel)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.etcd.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// explain adds where an error happened, and what to do when that is known.
func (s *Server) explain(err error) error {
	err = fmt.Errorf("%w (its data is in %s)", err, s.dataDir)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: make room on that disk, or choose another one with --dir", err)
	}
	return err
}
