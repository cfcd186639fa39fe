package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/devcluster/internal/cgroup"
	"github.com/credence-id/credence/devcluster/internal/containerd"
)

// cleanLimit is far more than killed processes take to be gone.
const cleanLimit = time.Minute

// Clean ends what runs of a node in folder, however its run ended: processes and with them their mounts, control groups, and
// what it changed in the kernel. Images and volumes on disk stay. Where there was no node there is nothing to do.
func Clean(ctx context.Context, folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	// In this order: a shim that lives on would see to it that its container is started again or cleaned up.
	if err := containerd.Kill(ctx, folder); err != nil {
		return fmt.Errorf("clean up node: %w", err)
	}
	if err := cgroup.Remove(ctx, groupName(folder)); err != nil {
		return fmt.Errorf("clean up node: %w", err)
	}
	if err := containerd.RemoveState(folder); err != nil {
		return fmt.Errorf("clean up node: %w", err)
	}
	for _, machine := range containerd.MachineFolders() {
		if err := os.RemoveAll(inPlaceOf(folder, machine)); err != nil {
			return fmt.Errorf("clean up node: %w", err)
		}
	}
	if err := restoreTunables(kernelSettings, folder); err != nil {
		return fmt.Errorf("clean up node: %w", err)
	}
	if err := os.Remove(filepath.Join(folder, processesName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean up node: %w", err)
	}
	return nil
}

// groupName is the control group of the node in folder: one of its own, as kubelets end pods in theirs that they do not know.
func groupName(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return "credence-" + hex.EncodeToString(sum[:5])
}
