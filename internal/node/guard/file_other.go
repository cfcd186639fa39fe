//go:build !unix

package guard

import "io/fs"

// checkWriters accepts every file: its mode has no access rights here.
func checkWriters(string, fs.FileInfo) error { return nil }
