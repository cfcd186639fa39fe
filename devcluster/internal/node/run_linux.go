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
	"github.com/credence-id/credence/devcluster/internal/dns"
	"github.com/credence-id/credence/devcluster/internal/kubeconfig"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/kubeproxy"
	"github.com/credence-id/credence/devcluster/internal/network"
	"github.com/credence-id/credence/devcluster/internal/pki"
	"github.com/credence-id/credence/devcluster/internal/scheduler"
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
	n.runtime = containerd.Settings{Programs: programs, Folder: settings.Folder}
	n.network = network.Settings{Folder: settings.Folder, Nft: programs.Nft, Shared: settings.Shared}
	if err := n.prepare(ctx); err != nil {
		return err
	}
	disconnect, err := network.Start(n.network)
	if err != nil {
		return err
	}
	defer disconnect()
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
	network   network.Settings
	scheduler scheduler.Settings
	kubelet   kubelet.Settings
	proxy     kubeproxy.Settings
	dns       dns.Settings
}

// prepare writes what the parts are given.
func (n *node) prepare(ctx context.Context) error {
	if err := n.runtime.Prepare(); err != nil {
		return err
	}
	if err := n.network.WritePlugins(n.runtime.CNIFolder(), n.runtime.Programs.Plugins); err != nil {
		return err
	}
	files, err := pki.EnsureNode(n.PKIFolder, Name, network.Node, time.Now())
	if err != nil {
		return err
	}
	config := func(name string) string { return filepath.Join(n.Folder, name+".kubeconfig") }
	n.scheduler = scheduler.Settings{PKI: n.PKI, Node: files, Kubeconfig: config("scheduler")}
	n.kubelet = kubelet.Settings{
		PKI: n.PKI, Node: files, Kubeconfig: config("kubelet"), Name: Name, Folder: n.Folder,
		Address: network.Node, DNS: network.DNS, Domain: network.Domain,
		Runtime: n.runtimeSocket(), CgroupRoot: "/" + groupName(n.Folder),
	}
	n.proxy = kubeproxy.Settings{Kubeconfig: config("proxy"), Name: Name, Pods: network.Pods}
	n.dns = dns.Settings{Kubeconfig: config("dns"), Address: network.Node, Domain: network.Domain}
	for _, client := range []struct {
		kubeconfig, user string
		certificate      pki.Pair
	}{
		{n.scheduler.Kubeconfig, "system:kube-scheduler", files.SchedulerClient},
		{n.kubelet.Kubeconfig, "system:node:" + Name, files.KubeletUser},
		{n.proxy.Kubeconfig, "system:kube-proxy", files.ProxyClient},
		{n.dns.Kubeconfig, pki.DNSUser, files.DNSClient},
	} {
		if err := kubeconfig.Write(client.kubeconfig, n.URL, client.user, n.PKI.Authority.Cert, client.certificate); err != nil {
			return err
		}
	}
	if err := n.prepareImageCredentials(ctx); err != nil {
		return err
	}
	if err := n.kubelet.Write(); err != nil {
		return err
	}
	if err := rememberTunables(kernelSettings, n.Folder); err != nil {
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
	stopGuard, err := n.keepGuard(ctx, limited, fail)
	if err != nil {
		return orCause(limited, err)
	}
	defer stopGuard()
	stopKubelet := n.keep(ctx, fail, "kubelet", child(append([]string{kubelet.Subcommand}, n.kubelet.Args()...)))
	defer stopKubelet()
	if err := n.awaitReady(limited, began); err != nil {
		return orCause(limited, err)
	}
	// It takes its addresses from the node, and ends when these change.
	stopProxy := n.keep(ctx, fail, kubeproxy.Subcommand, child(append([]string{kubeproxy.Subcommand}, n.proxy.Args()...)))
	defer stopProxy()
	stopDNS := n.keep(ctx, fail, dns.Subcommand, child(append([]string{dns.Subcommand}, n.dns.Args()...)))
	defer stopDNS()
	stopDriver, err := n.keepDriver(ctx, fail)
	if err != nil {
		return err
	}
	defer stopDriver()
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
	if err := containerd.Await(ctx, n.runtime.Socket()); err != nil {
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
