package etcd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// closeTimeout is what Close waits for clients that do not hang up. Leaving
// earlier loses nothing: the log on disk is complete at any time.
const closeTimeout = 2 * time.Second

// slowAfter is how long a start may take before that is logged.
const slowAfter = 10 * time.Second

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
// A start that takes long is logged.
func Start(ctx context.Context, dataDir, socketDir string) (*Server, error) {
	return startBy(ctx, dataDir, socketDir, time.After(slowAfter))
}

func startBy(ctx context.Context, dataDir, socketDir string, slow <-chan time.Time) (*Server, error) {
	socks, err := openSockets(socketDir)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	s := &Server{dataDir: dataDir, sockets: socks, log: zap.NewAtomicLevelAt(zap.WarnLevel), end: make(ending, 1)}
	if err := s.start(ctx, slow); err != nil {
		s.Close()
		return nil, fmt.Errorf("start etcd: %w", s.explain(err))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, slow <-chan time.Time) error {
	type outcome struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan outcome, 1)
	log := logger(s.log, s.end)
	// On its own, because it ends without a result when it logs a fatal entry. It
	// may panic when its log was cut.
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				err, ok := cause.(error)
				if !ok {
					err = fmt.Errorf("%v", cause)
				}
				started <- outcome{err: fmt.Errorf("its log in %s is damaged (%w): restore a copy of the folder, or choose another one with --dir", s.wal(), err)}
			}
		}()
		etcd, err := embed.StartEtcd(config(s.dataDir, s.sockets, log))
		started <- outcome{etcd, err}
	}()
	var ready, stopped <-chan struct{}
	var failed <-chan error
	for {
		select {
		case got := <-started:
			if got.err != nil {
				return got.err
			}
			s.etcd = got.etcd
			ready, stopped, failed = s.etcd.Server.ReadyNotify(), s.etcd.Server.StopNotify(), s.etcd.Err()
		case <-ready:
			return nil
		case err := <-failed:
			return err
		case err := <-s.end:
			return err
		case <-stopped:
			return errors.New("it stopped")
		case <-slow:
			log.Warn("it has not started yet: it has a large log to read, or its log is damaged", zap.String("log", s.wal()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wal is where etcd keeps its log.
func (s *Server) wal() string { return filepath.Join(s.dataDir, "member", "wal") }

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
