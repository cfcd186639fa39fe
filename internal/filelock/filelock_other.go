//go:build !unix && !windows

package filelock

import (
	"errors"
	"os"
)

// TakeOpen fails: locks of files are not known here.
func TakeOpen(*os.File) error { return errors.ErrUnsupported }
