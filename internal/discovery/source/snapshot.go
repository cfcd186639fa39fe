package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxAttempts bounds how often files that keep changing are read again; the next event or poll comes anyway.
const maxAttempts = 10

var errUnstable = errors.New("changed while it was read")

// stamp identifies a file's contents as well as the file system can.
type stamp struct {
	path string // without links
	info os.FileInfo
}

func (s stamp) equal(other stamp) bool {
	return s.path == other.path && os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// file is what was read of one file.
type file struct {
	data []byte
	info os.FileInfo
}

// readTogether reads files as of one moment: the targets of their paths must be the same before and after.
func readTogether(limit int64, paths ...string) ([]file, error) {
	var err error
	for range maxAttempts {
		var files []file
		if files, err = readOnce(limit, paths); err == nil {
			return files, nil
		}
		if !errors.Is(err, errUnstable) && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return nil, err
}

func readOnce(limit int64, paths []string) ([]file, error) {
	before := make([]stamp, len(paths))
	for i, path := range paths {
		var err error
		if before[i], err = stampOf(path); err != nil {
			return nil, err
		}
	}
	files := make([]file, len(paths))
	for i := range paths {
		data, err := readBounded(before[i].path, limit)
		if err != nil {
			return nil, err
		}
		files[i] = file{data: data, info: before[i].info}
	}
	for i, path := range paths {
		after, err := stampOf(path)
		if err != nil {
			return nil, err
		}
		if !after.equal(before[i]) {
			return nil, fmt.Errorf("%s %w", path, errUnstable)
		}
	}
	return files, nil
}

func stampOf(path string) (stamp, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return stamp{}, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return stamp{}, fmt.Errorf("%s is not a regular file", path)
	}
	return stamp{path: target, info: info}, nil
}

// readBounded reads at most one byte more than limit, enough to see that a file is too large.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
