package guard

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// largestFile is more than a template, or a list of a node's pods, needs.
const largestFile = 1 << 20

// readFile reads a file that decides what pods may do: one that other users than root and the guard's own could write is not read.
func readFile(path string) ([]byte, error) {
	// O_NONBLOCK: opening a pipe must not wait for its writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > largestFile:
		return nil, fmt.Errorf("%s is larger than 1 MiB", path)
	}
	if err := checkWriters(file, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, largestFile))
}
