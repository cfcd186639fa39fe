//go:build unix

package clientgo_test

import (
	"syscall"
	"testing"
	"time"
)

// used is the CPU time that this process has used so far.
func used(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
