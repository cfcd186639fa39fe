package keystore

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed whenever another ring may be stored. It returns nil when ctx is done.
func (d *Directory) Watch(ctx context.Context, changed func()) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", d.path, err)
	}
	defer func() { _ = watcher.Close() }()
	if err := watcher.Add(d.path); err != nil {
		return fmt.Errorf("watch %s: %w", d.path, err)
	}
	// What changed before the watch began is told of too.
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			return fmt.Errorf("watch %s: %w", d.path, err)
		case event := <-watcher.Events:
			// ring.json is replaced last, by a rename.
			if filepath.Base(event.Name) == documentName {
				changed()
			}
		}
	}
}
