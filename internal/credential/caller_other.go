//go:build !linux && !darwin && !windows

package credential

// started is the start of a process: unknown here.
func started(int) string { return "" }

// program is the program of a process: unknown here.
func program(int) string { return "" }
