// Package storage runs the etcd that the API server embeds where no external one is given. In goes a directory, out comes
// the endpoint of a server on a unix socket that only this user can reach. It never listens on a network.
package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxSocketPath is the longest path that a unix socket can have on every system (sun_path less the ending NUL).
const maxSocketPath = 103

// startTimeout is how long etcd may take until it answers; replaying a large log takes seconds.
const startTimeout = time.Minute

// slowAfter is how long etcd may take to start before that is logged.
const slowAfter = 10 * time.Second

// Etcd is a running server.
type Etcd struct {
	server  *embed.Etcd
	lock    *fileutil.LockedFile
	level   zap.AtomicLevel
	sockets string
	remove  bool
}

// Start runs etcd on the data in dir, which it creates with mode 0700 if it is missing. Stop must be called.
// A start that takes long is logged.
func Start(ctx context.Context, dir string, log *slog.Logger) (*Etcd, error) {
	return startBy(ctx, dir, log, time.After(slowAfter))
}

func startBy(ctx context.Context, dir string, log *slog.Logger, slow <-chan time.Time) (*Etcd, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd data directory: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("etcd data directory %s is in use by another process: stop it, or choose another directory", dir)
	} else if err != nil {
		return nil, fmt.Errorf("lock etcd data directory: %w", err)
	}
	e := &Etcd{lock: lock}
	if err := e.placeSockets(dir); err != nil {
		e.release()
		return nil, err
	}
	ready := make(chan error, 1)
	deadline, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- e.start(dir) }()
	for {
		select {
		case err := <-started:
			if err != nil {
				e.release()
				return nil, err
			}
			started = nil
			go e.wait(ready)
		case err := <-ready:
			if err != nil {
				e.Stop()
				return nil, fmt.Errorf("embedded etcd in %s ended: %w", dir, err)
			}
			return e, nil
		case <-slow:
			log.Warn("the embedded etcd has not started yet: it has a large log to read, or its log is damaged", "log", walOf(dir))
		case <-deadline.Done():
			// A server that did not start cannot be stopped. Its lock goes with the process.
			if started == nil {
				e.Stop()
			}
			return nil, fmt.Errorf("embedded etcd in %s did not start: %w; if its log in %s is damaged, restore a copy of the folder", dir, deadline.Err(), walOf(dir))
		}
	}
}

// walOf is where etcd keeps its log.
func walOf(dir string) string { return filepath.Join(dir, "data", "member", "wal") }

// start may block for good, or panic, if the log was cut.
func (e *Etcd) start(dir string) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("start embedded etcd in %s: its log in %s is damaged (%v): restore a copy of the folder", dir, walOf(dir), cause)
		}
	}()
	if e.server, err = embed.StartEtcd(e.config(dir)); err != nil {
		return fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	}
	return nil
}

// wait reports when the server answers, or why it never will.
func (e *Etcd) wait(ready chan<- error) {
	select {
	case <-e.server.Server.ReadyNotify():
		ready <- nil
	case err := <-e.server.Err():
		ready <- err
	}
}

// Endpoint is what --etcd-servers would name.
func (e *Etcd) Endpoint() string { return "unix://" + socketURL(e.sockets, "client").Path }

// Failed delivers the error that ends the server, if one does.
func (e *Etcd) Failed() <-chan error { return e.server.Err() }

// Stop ends the server after what is under way is on disk.
func (e *Etcd) Stop() {
	e.level.SetLevel(zap.FatalLevel)
	e.server.Close()
	e.release()
}

func (e *Etcd) config(dir string) *embed.Config {
	config := embed.NewConfig()
	config.Name = "credence"
	config.Dir = filepath.Join(dir, "data")
	config.ListenClientUrls = []url.URL{socketURL(e.sockets, "client")}
	config.AdvertiseClientUrls = config.ListenClientUrls
	// etcd binds the peers' socket to the URL's host alone: without one it would be an abstract socket, open to all users.
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: filepath.Join(e.sockets, "peer.sock")}}
	// A single member dials no peer; the name stays the same wherever the sockets are.
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.logger())
	return config
}

// logger writes errors only, except those of a stop.
func (e *Etcd) logger() *zap.Logger {
	e.level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), e.level))
}

// placeSockets chooses a directory of this user alone whose path is short enough.
func (e *Etcd) placeSockets(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("place etcd sockets: %w", err)
	}
	if e.sockets = filepath.Join(absolute, "run"); len(e.sockets)+len("/client.sock") <= maxSocketPath {
		if err := os.MkdirAll(e.sockets, 0o700); err != nil {
			return fmt.Errorf("create directory for etcd sockets: %w", err)
		}
		return os.Chmod(e.sockets, 0o700)
	}
	if e.sockets, err = os.MkdirTemp("", "credence-etcd-"); err != nil {
		return fmt.Errorf("create directory for etcd sockets: %w", err)
	}
	e.remove = true
	return nil
}

// release comes last: sockets that a successor has bound by then would be removed with ours.
func (e *Etcd) release() {
	if e.remove {
		// Best effort: the leftover is an empty directory under the temporary one.
		_ = os.RemoveAll(e.sockets)
	}
	// Closing it unlocks; the process is about to end, or to report the error that brought it here.
	_ = e.lock.Close()
}

func socketURL(dir, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(dir, name+".sock")}
}
