//go:build !unix

package credential

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// become runs a program in the place of this process, where the system cannot replace one by another.
func become(program string, args []string) (int, error) {
	cmd := exec.Command(program, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	return cmd.ProcessState.ExitCode(), nil
}
