package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// siteFile is a file of a static server, and how it must be served.
type siteFile struct {
	Path         string `json:"path"` // of its URL, with the slash at its start
	File         string `json:"file"` // where it was written
	ContentType  string `json:"contentType"`
	CacheControl string `json:"cacheControl"`
	Result       string `json:"result"` // written or unchanged

	content []byte
}

// writeSite writes files under a folder, each replaced whole, and returns them with their File and Result filled in. What
// else is in the folder stays.
func writeSite(folder string, files []siteFile) ([]siteFile, error) {
	written := make([]siteFile, len(files))
	for i, file := range files {
		file.File = filepath.Join(folder, filepath.FromSlash(file.Path))
		changed, err := replaceFile(file.File, file.content)
		if err != nil {
			return nil, err
		}
		file.Result = "unchanged"
		if changed {
			file.Result = "written"
		}
		written[i] = file
	}
	return written, nil
}

// replaceFile gives a file its contents, public like the documents are, and reports whether that was a change. It leaves
// either the old or the new file, also after a crash.
func replaceFile(path string, content []byte) (changed bool, err error) {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
		return false, nil
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, fmt.Errorf("create the folder of %s: %w", path, err)
	}
	temporary, err := os.CreateTemp(folder, ".export-*.tmp")
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close()); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(temporary.Name(), path); err != nil {
		return false, fmt.Errorf("replace %s: %w", path, err)
	}
	return true, nil
}
