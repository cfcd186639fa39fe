//go:build !unix

package cache

// lockCanBeRemoved: a file that is open, or that somebody else has open, stays.
const lockCanBeRemoved = false

// sync does nothing: folders are not synced here.
func (f *Folder) sync() error { return nil }
