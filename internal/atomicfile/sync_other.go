//go:build !unix

package atomicfile

const hasModes = false

// SyncFolder does nothing: this system has no way to do it.
func SyncFolder(string) error { return nil }
