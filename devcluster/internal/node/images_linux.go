package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/state"
)

// prepareImageCredentials has the kubelet run the program for credentials of images, if there is one.
func (n *node) prepareImageCredentials(ctx context.Context) error {
	if n.ImageCredentials == "" {
		return nil
	}
	address, err := n.writeAddress("image-credentials")
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, n.ImageCredentials, "kubelet-config", "--registries", n.ImageRegistries, "--kubeconfig", address, "--audience", n.Audience)
	command.Stderr = &stderr
	config, err := command.Output()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		return errors.New(strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", n.ImageCredentials, err)
	}
	n.kubelet.ImageCredentials = filepath.Dir(n.ImageCredentials)
	n.kubelet.ImageCredentialsConfig = filepath.Join(n.Folder, "image-credentials.yaml")
	return state.WriteFile(n.kubelet.ImageCredentialsConfig, config, 0o600)
}
