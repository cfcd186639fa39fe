package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// Dir is a state directory that this process holds alone.
type Dir struct {
	path string
	lock *fileutil.LockedFile
}

// Open creates the directory at path (mode 0700) when it is missing and locks
// it. The lock ends with the process, however the process ends.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find directory %s: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, unusable(abs, err)
	}
	lockPath := filepath.Join(abs, "lock")
	lock, err := fileutil.TryLockFile(lockPath, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("directory %s is in use by another credence-devcluster%s: stop it, or choose another directory with --dir",
			abs, holder(lockPath))
	}
	if err != nil {
		return nil, unusable(abs, err)
	}
	if err := writePID(lock); err != nil {
		return nil, errors.Join(unusable(abs, err), lock.Close())
	}
	return &Dir{path: abs, lock: lock}, nil
}

// Path is the absolute path of a file or folder in the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Close lets go of the directory. Its files stay.
func (d *Dir) Close() error {
	return d.lock.Close()
}

func writePID(lock *fileutil.LockedFile) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(lockPath string) string {
	raw, err := os.ReadFile(lockPath)
	pid := strings.TrimSpace(string(raw))
	if err != nil || pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}

func unusable(path string, err error) error {
	return fmt.Errorf("cannot use directory %s: %w: make it writable for this user, or choose another with --dir", path, err)
}
