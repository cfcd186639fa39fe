//go:build !linux

package volumes

import "errors"

var errElsewhere = errors.New("volumes in memory need Linux")

// Supported returns an error where no volume can be made.
func Supported() error { return errElsewhere }

// Mount implements Memory.
func (Tmpfs) Mount(string) error { return errElsewhere }

// Mounted implements Memory.
func (Tmpfs) Mounted(string) (bool, error) { return false, errElsewhere }

// Unmount implements Memory.
func (Tmpfs) Unmount(string) error { return errElsewhere }
