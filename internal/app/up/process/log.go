//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxLog is the size that a log file may reach before it is cut, in bytes.
const MaxLog = 32 << 20

// Rotate keeps the log of the run before as logFile.1, so that this run starts with an empty one.
func Rotate(logFile string) error {
	err := os.Rename(logFile, logFile+".1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rotate %s: %w", logFile, err)
	}
	return nil
}

// Cut moves a log file's contents to logFile.1 once it is larger than limit. The processes that write to it keep their
// open file and, as they append, go on at its beginning.
func Cut(logFile string, limit int64) error {
	info, err := os.Stat(logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Size() > limit {
		err = copyAndTruncate(logFile)
	}
	if err != nil {
		return fmt.Errorf("cut %s: %w", logFile, err)
	}
	return nil
}

func copyAndTruncate(logFile string) error {
	from, err := os.OpenFile(logFile, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(logFile+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if truncateErr := from.Truncate(0); err == nil {
		err = truncateErr
	}
	return err
}
