//go:build !linux

package login_test

import (
	"os"
	"testing"
)

// newTerminal skips the test: here a page is opened by a program that a test cannot replace.
func newTerminal(t *testing.T) *os.File {
	t.Skip("needs Linux, where the program that opens a browser is found by its name, xdg-open")
	return nil
}
