package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/devcluster/internal/cgroup"
	"github.com/credence-id/credence/devcluster/internal/containerd"
	"github.com/credence-id/credence/devcluster/internal/kubeconfig"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/pki"
	"github.com/credence-id/credence/devcluster/internal/scheduler"
	"github.com/credence-id/credence/devcluster/internal/state"
)

const (
	startLimit = 5 * time.Minute
	// podGrace is what containers get to end by themselves, podLimit what all of it may take.
	podGrace = 2 * time.Second
	podLimit = 6 * time.Second
)

// run runs the parts until ctx ends (nil), or until one fails before the node was ready. Later a part that ends is started
// again.
func run(ctx context.Context, settings Settings) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	programs, err := containerd.Find()
	if err != nil {
		return err
	}
	n := &node{Settings: settings, running: running{file: filepath.Join(settings.Folder, processesName), log: log}}
	n.runtime = containerd.Settings{Programs: programs, Folder: settings.Folder, StreamPort: settings.Port + streamPort}
	if err := n.prepare(ctx); err != nil {
		return err
	}
	err = n.operate(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type node struct {
	Settings
	running
	runtime   containerd.Settings
	scheduler scheduler.Settings
	kubelet   kubelet.Settings
}

// prepare writes what the parts are given.
func (n *node) prepare(ctx context.Context) error {
	if err := n.runtime.Prepare(); err != nil {
		return err
	}
	files, err := pki.EnsureNode(n.PKIFolder, Name, time.Now())
	if err != nil {
		return err
	}
	n.scheduler = scheduler.Settings{PKI: n.PKI, Node: files, Port: n.Port + schedulerPort, Kubeconfig: filepath.Join(n.Folder, "scheduler.kubeconfig")}
	n.kubelet = kubelet.Settings{
		PKI: n.PKI, Node: files, Kubeconfig: filepath.Join(n.Folder, "kubelet.kubeconfig"), Name: Name, Folder: n.Folder,
		Runtime: n.runtime.Socket(), CgroupRoot: "/" + groupName(n.Folder), Port: n.Port + kubeletPort, HealthPort: n.Port + kubeletHealthPort,
	}
	if err := kubeconfig.Write(n.scheduler.Kubeconfig, n.URL, "system:kube-scheduler", n.PKI.Authority.Cert, files.SchedulerClient); err != nil {
		return err
	}
	if err := kubeconfig.Write(n.kubelet.Kubeconfig, n.URL, "system:node:"+Name, n.PKI.Authority.Cert, files.KubeletUser); err != nil {
		return err
	}
	config, err := n.kubelet.Config()
	if err != nil {
		return fmt.Errorf("make the kubelet's configuration: %w", err)
	}
	if err := state.WriteFile(n.kubelet.ConfigFile(), config, 0o600); err != nil {
		return err
	}
	if err := rememberTunables(n.Folder); err != nil {
		return err
	}
	return cgroup.Ensure(groupName(n.Folder))
}

// operate runs the parts. The kubelet ends first, then what it has started, then what that runs in.
func (n *node) operate(ctx context.Context) error {
	starting, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	began := time.Now()

	stopRuntime := n.keep(ctx, fail, "containerd", n.runtime.Run)
	defer stopRuntime()
	defer n.endPods(ctx)
	stopScheduler := n.keep(ctx, fail, "kube-scheduler", child(append([]string{scheduler.Subcommand}, n.scheduler.Args()...)))
	defer stopScheduler()

	limited, cancel := context.WithTimeoutCause(starting, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	if err := n.ensurePause(limited); err != nil {
		return orCause(limited, err)
	}
	stopKubelet := n.keep(ctx, fail, "kubelet", child(append([]string{kubelet.Subcommand}, n.kubelet.Args()...)))
	defer stopKubelet()
	if err := n.awaitReady(limited, began); err != nil {
		return orCause(limited, err)
	}
	n.settle()
	n.log.Info("node is ready", "node", Name)
	<-starting.Done()
	return context.Cause(starting)
}

// orCause prefers what ended a wait to what was waited for.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() == context.Canceled {
		return cause
	}
	return err
}

func (n *node) ensurePause(ctx context.Context) error {
	if err := containerd.Await(ctx, n.Folder); err != nil {
		return err
	}
	has, err := containerd.HasImage(ctx, n.Folder, containerd.PauseImage)
	if err != nil || has {
		return err
	}
	return containerd.Load(ctx, n.runtime.Programs, n.Folder, containerd.PauseImage, n.runtime.Programs.Busybox, "sleep", "inf")
}

func (n *node) endPods(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), podLimit)
	defer cancel()
	// Containers that are left then are killed at once.
	if err := containerd.EndPods(ctx, n.Folder, podGrace); err != nil {
		n.log.Warn("pods are killed, as they could not be ended", "error", err)
	}
}
