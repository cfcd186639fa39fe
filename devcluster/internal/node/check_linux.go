package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/devcluster/internal/containerd"
	"github.com/credence-id/credence/devcluster/internal/image"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
)

// maxSocketPath is what fits in sun_path on Linux, with its final zero (unix(7)).
const maxSocketPath = 107

// Check returns an error that names what is missing for a node in folder: rights, programs, a short path.
func Check(folder string) error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root, to make namespaces, mounts and control groups: run it with sudo")
	}
	if _, err := containerd.Find(); err != nil {
		return err
	}
	longest := filepath.Join(kubelet.Root(folder), kubelet.LongestSocket)
	if tooLong := len(longest) - maxSocketPath; tooLong > 0 {
		return fmt.Errorf("the path %s is too long for the kubelet's sockets by %d characters: choose a shorter --dir", folder, tooLong)
	}
	return checkWatches(watchesOfANode, openWatches)
}

// Load makes the static program at path an image that the node in folder has, with args as its first arguments, and returns
// its whole name.
func Load(ctx context.Context, folder, name, path string, args ...string) (string, error) {
	fullName, err := image.FullName(name)
	if err != nil {
		return "", err
	}
	programs, err := ofRunningNode(folder)
	if err != nil {
		return "", err
	}
	return fullName, containerd.Load(ctx, programs, folder, fullName, path, args...)
}

// Import gives the node in folder the images of the archive at path, and returns their names.
func Import(ctx context.Context, folder, path string) ([]string, error) {
	programs, err := ofRunningNode(folder)
	if err != nil {
		return nil, err
	}
	archive, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import images: %w", err)
	}
	defer archive.Close()
	return containerd.Import(ctx, programs, folder, archive)
}

func ofRunningNode(folder string) (containerd.Programs, error) {
	if _, err := os.Stat(containerd.Socket(folder)); err != nil {
		return containerd.Programs{}, fmt.Errorf("no node runs in %s: start one with --node", filepath.Dir(folder))
	}
	return containerd.Find()
}
