//go:build unix

package provider

import (
	"fmt"
	"os"
	"syscall"
)

// become replaces this process by a program, so that the client stays its parent. It returns only if that fails.
func become(program string, args []string) (int, error) {
	return 0, fmt.Errorf("run %s: %w", program, syscall.Exec(program, args, os.Environ()))
}
