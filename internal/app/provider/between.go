package provider

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/credence-id/credence/internal/credential"
)

// between runs a program as a child that works in the place of this process: for the client of this process, with its input and
// output. It returns the child's exit code. Where a process can become another program, that is done instead (become_unix.go), and only
// tests come here.
func between(program string, args []string) (int, error) {
	cmd := exec.Command(program, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if standIn := credential.CallerEnvironment(os.Getenv); standIn != "" {
		cmd.Env = append(cmd.Env, standIn)
	}
	// A terminal interrupts both. The child has to report how it ended.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	return cmd.ProcessState.ExitCode(), nil
}
