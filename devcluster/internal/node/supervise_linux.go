package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	processes "github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/containerd"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/state"
)

const (
	settingsName = "settings.json"
	// stopLimit is for the kubelet, pods that use up podGrace, and containerd, one after the other.
	stopLimit = 9 * time.Second
)

// Supervise runs a node until ctx ends (nil), or until a part fails before the node was ready. kube-apiserver must be ready.
//
// All of the node runs in a process with mounts and a network of its own. So what pods mount and the network between them are
// invisible to other processes and end with them, however they end; and folders of the machine that are in a program's code can be
// the node's own.
func Supervise(ctx context.Context, settings Settings) error {
	if err := os.MkdirAll(settings.Folder, 0o700); err != nil {
		return fmt.Errorf("make the node's folder: %w", err)
	}
	content, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encode the node's settings: %w", err)
	}
	if err := state.WriteFile(filepath.Join(settings.Folder, settingsName), content, 0o600); err != nil {
		return err
	}
	output := &logFilter{stopping: ctx.Done()}
	err = processes.Run(ctx, processes.Spec{Args: []string{Subcommand, settings.Folder}, Output: output, Grace: stopLimit, Apart: true, Namespaces: true})
	if err != nil {
		err = fmt.Errorf("%w%s", err, output.lastLine())
	}
	return errors.Join(err, Clean(context.WithoutCancel(ctx), settings.Folder))
}

// Child is the process that Supervise runs. It ends when the parent does.
func Child(ctx context.Context, folder string) error {
	if err := mountsAreOwn(); err != nil {
		return err
	}
	processes.DieWithParent()
	content, err := os.ReadFile(filepath.Join(folder, settingsName))
	if err != nil {
		return fmt.Errorf("read the node's settings: %w", err)
	}
	var settings Settings
	if err := json.Unmarshal(content, &settings); err != nil {
		return fmt.Errorf("read the node's settings: %w", err)
	}
	if err := takeMachineFolders(folder); err != nil {
		return err
	}
	return run(ctx, settings)
}

// mountsAreOwn is an error if what is mounted here would be seen by the parent, too: then this process was not started by
// Supervise, and would take folders from the machine.
func mountsAreOwn() error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return fmt.Errorf("look at mounts: %w", err)
	}
	parent, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid()))
	if err != nil {
		return fmt.Errorf("look at mounts: %w", err)
	}
	if own == parent {
		return fmt.Errorf("%s is started by credence-devcluster --node only", Subcommand)
	}
	return nil
}

// inPlaceOf is the folder of the node that is mounted over one of the machine.
func inPlaceOf(folder, machine string) string { return filepath.Join(folder, "machine", machine) }

// takeMachineFolders mounts folders of the node over those of the machine.
func takeMachineFolders(folder string) error {
	for _, machine := range append(kubelet.MachineFolders(), containerd.MachineFolders()...) {
		own := inPlaceOf(folder, machine)
		for _, each := range []string{own, machine} {
			if err := os.MkdirAll(each, 0o755); err != nil {
				return fmt.Errorf("make folder for the node: %w", err)
			}
		}
		if err := syscall.Mount(own, machine, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s in place of %s: %w", own, machine, err)
		}
	}
	return nil
}
