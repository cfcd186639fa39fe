//go:build !unix

package file

import "io/fs"

// checkPrivate takes every file: its mode does not say here who can read it.
func checkPrivate(string, fs.FileInfo) error { return nil }
