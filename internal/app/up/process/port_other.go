//go:build unix && !linux

package process

// listenerOf knows nothing here: a query needs a program that may not be installed.
func listenerOf(int) (Running, bool) { return Running{}, false }
