//go:build unix && !linux

package execcredential

import "syscall"

func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }

// systemLimits are those of macOS, ARG_MAX; the other systems take no less.
func systemLimits() limits { return limits{total: 1 << 20} }

// descendants are not known here.
func descendants(int) []int { return nil }
