//go:build unix && !linux

package up

// noteWatches has nothing to look for: only Linux has inotify.
func (*run) noteWatches() {}
