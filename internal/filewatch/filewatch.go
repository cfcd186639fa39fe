// Package filewatch finds changes of files. In go paths, out come calls whenever one of them leads to another file, or to other
// contents. It reads no file, and looks at them again and again instead of a watch of the kernel: a Linux user has 128 of those, and
// none reports a change on a network file system.
package filewatch

import (
	"context"
	"os"
	"time"
)

const (
	// Interval is the usual time between two looks.
	Interval = time.Second
	// settle joins the changes of files that are written one after the other.
	settle = 20 * time.Millisecond
	// regardless is after how many looks changed is called in any case: a file may be written twice within one tick of the clock.
	regardless = 30
)

// Run calls changed once, after each change of what the paths lead to, and regardless of changes at every thirtieth look, until ctx is done.
// Links are followed, and files need not exist. Calls never overlap.
func Run(ctx context.Context, interval time.Duration, changed func(), paths ...string) {
	look := time.NewTicker(interval)
	defer look.Stop()
	for ctx.Err() == nil {
		before := stat(paths)
		changed()
		for range regardless {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if !equal(before, stat(paths)) {
				wait(ctx, settle)
				break
			}
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// stat returns what each path leads to; nil where there is nothing.
func stat(paths []string) []os.FileInfo {
	found := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

func equal(a, b []os.FileInfo) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) {
			return false
		}
		if a[i] != nil && !(os.SameFile(a[i], b[i]) && a[i].Size() == b[i].Size() && a[i].Mode() == b[i].Mode() && a[i].ModTime().Equal(b[i].ModTime())) {
			return false
		}
	}
	return true
}
