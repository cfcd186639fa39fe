//go:build !unix && !windows

package cache

import (
	"errors"
	"io/fs"
	"os"
)

// errUnsupported refuses to keep credentials where it is not known who can read a file.
var errUnsupported = errors.New("credentials cannot be kept on this system: who could read them is not known")

func checkAccess(string, fs.FileInfo) error { return errUnsupported }

func lockFile(*os.File) error { return errUnsupported }
