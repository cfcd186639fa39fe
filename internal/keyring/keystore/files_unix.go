//go:build unix

package keystore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/credence-id/credence/internal/filelock"
)

// maxFileSize is far more than a ring or a key ever takes.
const maxFileSize = 1 << 20

// lockRetry is how often a busy lock is tried again. A writer holds it for the time of a few fsyncs.
const lockRetry = 10 * time.Millisecond

// lock waits for the only lock of the directory until ctx ends. The kernel releases it when the process dies; its file stays,
// as removing it would let two processes lock two files of one name.
func (d *Directory) lock(ctx context.Context) (release func(), err error) {
	if err := checkDirectory(d.path); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock key directory %s: %w", d.path, ctx.Err())
		}
		file, err := filelock.Take(d.file(lockName))
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("lock key directory: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockRetry):
		}
	}
}

// checkDirectory refuses a path that is not a directory of this user alone.
func checkDirectory(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("open key directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("key directory %s is %s: give the path of a directory itself", path, kindOf(info.Mode()))
	}
	return checkAccess("key directory", path, info, "700")
}

// readPrivate returns the content of a regular file of this user alone. The checks are made on the open file, so what was
// checked is what is read.
func readPrivate(path string) ([]byte, error) {
	// O_NONBLOCK: opening a pipe must not wait for its writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("key file %s is %s: put the file itself there", path, kindOf(fs.ModeSymlink))
	}
	if err != nil {
		return nil, fmt.Errorf("open key file: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("key file %s is %s: put a regular file there", path, kindOf(info.Mode()))
	}
	if err := checkAccess("key file", path, info, "600"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("key file %s is larger than %d bytes", path, maxFileSize)
	}
	return data, nil
}

// checkAccess refuses what belongs to another user or gives any right to group or others. wanted is the mode to set.
func checkAccess(what, path string, info fs.FileInfo, wanted string) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s %s has mode %#o: other users have access to it, and may know the keys; if they do not, run: chmod %s %s",
			what, path, mode, wanted, path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s %s: its owner is not known", what, path)
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("%s %s belongs to uid %d, but this process runs as uid %d: run it as that user, or chown the file", what, path, stat.Uid, uid)
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	case mode.IsRegular():
		return "a regular file"
	default:
		return "a device, pipe or socket"
	}
}
