package source

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// defaultPoll finds changes that the kernel does not report: on network file systems, or without free watches.
	defaultPoll = 30 * time.Second
	// settle joins the events of one change, such as two files that are written one after the other.
	settle = 20 * time.Millisecond
)

// fileWatch says when files may have changed, whatever happens to them and to the folders and links on their paths.
type fileWatch struct {
	paths      []string // absolute
	poll       time.Duration
	newWatcher func() (*fsnotify.Watcher, error)
}

func newFileWatch(poll time.Duration, paths ...string) fileWatch {
	if poll == 0 {
		poll = defaultPoll
	}
	return fileWatch{paths: paths, poll: poll, newWatcher: fsnotify.NewWatcher}
}

// run calls changed once, and again after every change and every poll interval, until ctx is done. Each round watches
// anew before it calls: a watch stays with the folder that it was set on, and that folder may have been replaced.
func (w fileWatch) run(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		w.round(ctx, changed)
	}
}

func (w fileWatch) round(ctx context.Context, changed func()) {
	poll := time.NewTimer(w.poll)
	defer poll.Stop()

	watcher, err := w.newWatcher()
	if err != nil {
		changed()
		select {
		case <-ctx.Done():
		case <-poll.C:
		}
		return
	}
	defer func() { _ = watcher.Close() }()
	places := w.set(watcher)
	changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			return
		case <-watcher.Errors:
		case event := <-watcher.Events:
			if !places[event.Name] && !places[filepath.Clean(event.Name)] {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(settle):
		}
		return
	}
}

// set watches the folders of all places that matter, and looks again until no link moved meanwhile. A folder that cannot
// be watched is left to the poll.
func (w fileWatch) set(watcher *fsnotify.Watcher) map[string]bool {
	places := map[string]bool{}
	for {
		before := len(places)
		for _, path := range w.paths {
			for _, place := range trail(path) {
				if !places[place] {
					places[place] = true
					_ = watcher.Add(filepath.Dir(place))
				}
			}
		}
		if len(places) == before {
			return places
		}
	}
}
