//go:build linux

package containerd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/state"
)

// Prepare writes the configuration.
func (s Settings) Prepare() error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return fmt.Errorf("make containerd's folder: %w", err)
	}
	return state.WriteFile(s.configFile(), s.config(), 0o600)
}

// Run runs containerd until it ends: with an error when it did so by itself, nil when ctx ended it. Its pods live on. It is
// killed when this process ends, however this process ends. started is called with its process ID.
func (s Settings) Run(ctx context.Context, output io.Writer, started func(pid int)) error {
	command := exec.CommandContext(ctx, s.Programs.Containerd, "--config", s.configFile())
	command.Dir = s.Folder
	return child.RunProgram(ctx, command, output, started)
}
