//go:build unix && !linux

package child

import "syscall"

func attributes(spec Spec) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: spec.Apart} }
