package etcd

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

const (
	clientSocket = "client.sock"
	httpSocket   = "http.sock"

	// maxSocketPath stays under the smallest sun_path of the systems we run on (104 bytes on macOS).
	maxSocketPath = 100
)

// sockets is the 0700 directory that keeps other users from the sockets in it.
type sockets struct {
	dir       string
	temporary bool
}

func openSockets(dir string) (sockets, error) {
	s := sockets{dir: dir}
	if len(s.path(clientSocket)) > maxSocketPath {
		temp, err := os.MkdirTemp("", "credence-etcd-")
		if err != nil {
			return sockets{}, fmt.Errorf("make a directory for sockets: %w", err)
		}
		return sockets{dir: temp, temporary: true}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return sockets{}, fmt.Errorf("make a directory for sockets: %w", err)
	}
	// It may exist with another mode, and the mode is all that guards the sockets.
	if err := os.Chmod(dir, 0o700); err != nil {
		return sockets{}, fmt.Errorf("close the directory of sockets to others: %w", err)
	}
	return s, nil
}

func (s sockets) path(name string) string {
	return filepath.Join(s.dir, name)
}

func (s sockets) url(name string) url.URL {
	return url.URL{Scheme: "unix", Path: s.path(name)}
}

func (s sockets) remove() {
	if s.temporary {
		_ = os.RemoveAll(s.dir)
	}
}
