package keystore

import (
	"context"
	"path/filepath"

	"github.com/credence-id/credence/internal/filewatch"
)

// Watch calls changed whenever another ring may be stored. It returns nil when ctx is done.
func (d *Directory) Watch(ctx context.Context, changed func()) error {
	// The document is replaced last, by a rename.
	filewatch.Run(ctx, filewatch.Interval, changed, filepath.Join(d.path, documentName))
	return nil
}
