//go:build linux

package containerd

import (
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
	_, err := importArchive(ctx, programs, folder, reader)
	reader.CloseWithError(io.ErrClosedPipe)
	writing := <-written
	switch {
	case err != nil && writing != nil && !errors.Is(writing, io.ErrClosedPipe):
		return writing
	case err != nil:
		return fmt.Errorf("load image %s: %w", fullName, err)
	}
	return nil
}

// Import gives the node the images of an archive, as of the OCI or of docker save, and returns their names.
func Import(ctx context.Context, programs Programs, folder string, archive io.Reader) ([]string, error) {
	output, err := importArchive(ctx, programs, folder, archive)
	if err != nil {
		return nil, fmt.Errorf("import images: %w", err)
	}
	var names []string
	for line := range strings.Lines(output) {
		if rest, found := strings.CutPrefix(line, "unpacking "); found {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names, nil
}

// importArchive returns what ctr prints.
func importArchive(ctx context.Context, programs Programs, folder string, archive io.Reader) (string, error) {
	command := exec.CommandContext(ctx, programs.Ctr, "--address", Socket(folder), "--namespace", namespace,
		"images", "import", "--snapshotter", snapshotter(folder), "-")
	command.Stdin = archive
	output, err := command.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = errors.New(strings.TrimSpace(string(output)))
	}
	return string(output), err
}
