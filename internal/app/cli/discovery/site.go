package discovery

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/atomicfile"
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
		if err := os.MkdirAll(filepath.Dir(file.File), 0o755); err != nil {
			return nil, fmt.Errorf("create the folder of %s: %w", file.File, err)
		}
		changed, err := atomicfile.Update(file.File, file.content, 0o644) // public like the documents are
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
