package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/filelock"
)

// lockRetry is how often a busy lock is tried again.
const lockRetry = 20 * time.Millisecond

// ErrBusy: another process had the lock until the context ended.
var ErrBusy = errors.New("another process is at work on the same credential")

// Wait configures the waiting while another process has the lock.
type Wait struct {
	// Patience is the time before Notice is called.
	Patience time.Duration
	// Notice is called once after that, with the number of the process that has the lock, or 0. May be nil.
	Notice func(holder int)
}

// Lock is the only lock of a name. Only its holder may change the stored file. The system releases it when the process ends,
// however it ends.
type Lock struct {
	folder   *Folder
	name     Name
	file     *os.File
	reserved *os.File
}

// Lock waits for the lock of a name until ctx ends; the error is ErrBusy then. The lock is on a file of its own, and not on
// the data, which readers may read at any time.
func (f *Folder) Lock(ctx context.Context, name Name, wait Wait) (*Lock, error) {
	patience := time.NewTimer(wait.Patience)
	defer patience.Stop()
	for {
		lock, err := f.tryLock(name)
		if !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (process %d): %w", ErrBusy, f.holder(name), ctx.Err())
		case <-patience.C:
			if wait.Notice != nil {
				wait.Notice(f.holder(name))
			}
		case <-time.After(lockRetry):
		}
	}
}

func (f *Folder) tryLock(name Name) (*Lock, error) {
	base := name.lock()
	if info, err := f.root.Lstat(base); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("lock: %w: %s is %s: remove it", ErrForeign, f.file(base), kindOf(info.Mode()))
	}
	file, err := f.root.OpenFile(base, os.O_RDWR|os.O_CREATE, 0o600)
	if _, there := f.root.Lstat(base); errors.Is(err, fs.ErrPermission) && there == nil {
		return nil, fmt.Errorf("lock %s: %w: remove it, if it is of another user", f.file(base), cause(err))
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.file(base), cause(err))
	}
	if err = filelock.TakeOpen(file); err == nil {
		err = f.isCurrent(file, base)
	}
	if err != nil {
		_ = file.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, err
		}
		return nil, fmt.Errorf("lock %s: %w", f.file(base), cause(err))
	}
	// The holder's number is for the notice of waiting processes. The lock does not depend on it.
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return &Lock{folder: f, name: name, file: file}, nil
}

// isCurrent checks that the locked file still has the name: removing the stored file removes the lock as well.
func (f *Folder) isCurrent(file *os.File, base string) error {
	locked, err := file.Stat()
	if err != nil {
		return err
	}
	named, err := f.root.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, named) {
		return filelock.ErrHeld
	}
	return err
}

// holder is the process that has the lock, or 0.
func (f *Folder) holder(name Name) int {
	file, err := f.open(name.lock())
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	text, _ := io.ReadAll(io.LimitReader(file, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// Release ends the lock.
func (l *Lock) Release() {
	l.dropReserved()
	_ = l.file.Close()
}
