package node

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"

	processes "github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/kubeconfig"
)

// writeAddress makes a kubeconfig for a program, with kube-apiserver's address and no credentials, and returns its path.
func (n *node) writeAddress(program string) (string, error) {
	path := filepath.Join(n.Folder, program+".kubeconfig")
	return path, kubeconfig.WriteAddress(path, n.URL, n.PKI.Authority.Cert)
}

// keepDriver runs the CSI driver, if there is one, until stop is called. It shares the kubelet's mounts.
func (n *node) keepDriver(ctx context.Context, fail context.CancelCauseFunc) (stop func(), err error) {
	if n.CSIDriver == "" {
		return func() {}, nil
	}
	config, err := n.writeAddress("csi")
	if err != nil {
		return nil, err
	}
	arguments := []string{"csi", "--node-name", Name, "--kubelet-dir", n.kubelet.Root(), "--kubeconfig", config}
	if n.ImageRegistries != "" {
		arguments = append(arguments, "--registries", n.ImageRegistries)
	}
	run := func(ctx context.Context, output io.Writer, started func(int)) error {
		command := exec.CommandContext(ctx, n.CSIDriver, arguments...)
		return processes.RunProgram(ctx, command, output, started)
	}
	return n.keep(ctx, fail, filepath.Base(n.CSIDriver), run), nil
}
