//go:build linux

package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/image"
)

// namespace is where the kubelet's images are.
const namespace = "k8s.io"

// Load makes the static program at path an image of that whole name (image.FullName). It replaces one of the same name.
func Load(ctx context.Context, programs Programs, folder, fullName, path string, args ...string) error {
	if err := image.CheckProgram(path); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := image.Write(writer, fullName, path, args...)
		writer.CloseWithError(err)
		written <- err
	}()
	command := exec.CommandContext(ctx, programs.Ctr, "--address", Socket(folder), "--namespace", namespace,
		"images", "import", "--snapshotter", snapshotter(folder), "-")
	command.Stdin = reader
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	reader.CloseWithError(io.ErrClosedPipe)
	writing := <-written
	switch {
	case err != nil && writing != nil && !errors.Is(writing, io.ErrClosedPipe):
		return writing
	case err != nil:
		return fmt.Errorf("load image %s: %s", fullName, strings.TrimSpace(output.String()))
	}
	return nil
}
