//go:build unix

package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/credence-id/credence/internal/filelock"
)

const lockName = "lock"

// Lock shows that this process, and no other, runs the installation. The kernel lets go of it when the process ends,
// however it ends.
type Lock struct{ file *os.File }

// HeldError means that another process runs the installation. PID is 0 where it is not known.
type HeldError struct {
	Dir Dir
	PID int
}

func (e *HeldError) Error() string {
	who := "another credence up"
	if e.PID != 0 {
		who += fmt.Sprintf(" (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: stop it with credence down --dir %s, or choose another --dir and --port", e.Dir, who, e.Dir)
}

// Holder shares the lock for an instant; Acquire looks again for longer than that.
const (
	acquireAttempts = 4
	acquirePause    = 50 * time.Millisecond
)

// Acquire takes the lock, or returns a *HeldError.
func (d Dir) Acquire() (*Lock, error) {
	file, err := os.OpenFile(d.Path(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written to (%w): choose another --dir, or change its permissions", d, cause(err))
	}
	err = d.lock(file)
	if err == nil {
		if err = writeHolder(file); err != nil {
			err = fmt.Errorf("write %s: %w", file.Name(), cause(err))
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Lock{file: file}, nil
}

func (d Dir) lock(file *os.File) error {
	for range acquireAttempts {
		if err := filelock.TakeOpen(file); !errors.Is(err, filelock.ErrHeld) {
			return err
		}
		time.Sleep(acquirePause)
	}
	return &HeldError{Dir: d, PID: holder(file)}
}

// Holder reports whether a process runs the installation, and its pid, which is 0 for the instant in which it is not known yet.
func (d Dir) Holder() (pid int, held bool, err error) {
	file, err := os.Open(d.Path(lockName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the process that runs %s: %w", d, cause(err))
	}
	defer func() { _ = file.Close() }()
	free, err := filelock.Free(file)
	switch {
	case err != nil:
	case free:
		return 0, false, nil
	default:
		return holder(file), true, nil
	}
	return 0, false, fmt.Errorf("find the process that runs %s: %w", d, err)
}

// Release lets go of the lock. The file stays: removing it would let two processes lock two files of one name.
func (l *Lock) Release() error {
	err := l.file.Truncate(0)
	if closeErr := l.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("release the lock: %w", err)
	}
	return nil
}

func writeHolder(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(file *os.File) int {
	text := make([]byte, 32)
	n, _ := file.ReadAt(text, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
