//go:build !windows

package credential

import "errors"

// systemFolder is for Windows alone: elsewhere programs of the system have fixed paths, or are found by PATH.
func systemFolder() (string, error) { return "", errors.ErrUnsupported }
