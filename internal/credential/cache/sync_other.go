//go:build !unix

package cache

// lockCanBeRemoved: an open file cannot be removed here, whichever process has it open.
const lockCanBeRemoved = false

// sync does nothing: folders are not synced here.
func (f *Folder) sync() error { return nil }
