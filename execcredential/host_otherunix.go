//go:build unix && !linux

package execcredential

import "syscall"

// attributes put a program into a session, and so a process group, of its own: it has no terminal, and gets an error instead of being
// stopped when it reads from one.
func attributes(own bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: own} }

// systemLimits are those of macOS, ARG_MAX; the other systems take no less.
func systemLimits() limits { return limits{total: 1 << 20} }

// descendants are not known here.
func descendants(int, string) []int { return nil }
