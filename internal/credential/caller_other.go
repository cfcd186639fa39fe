//go:build !linux && !darwin && !windows

package credential

// started tells when a process was started: not known here.
func started(int) string { return "" }

// program tells what a process runs: not known here.
func program(int) string { return "" }
