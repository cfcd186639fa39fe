package controlplane

import (
	"context"
	"time"

	"github.com/credence-id/credence/devcluster/internal/apiserver"
	"github.com/credence-id/credence/devcluster/internal/controllermanager"
	"github.com/credence-id/credence/devcluster/internal/etcd"
	"github.com/credence-id/credence/devcluster/internal/kubeconfig"
	"github.com/credence-id/credence/devcluster/internal/network"
	"github.com/credence-id/credence/devcluster/internal/node"
)

const (
	stopAPIServer         = 4 * time.Second
	stopControllerManager = 5 * time.Second
	// stopNode is for pods that use up their grace, and what is left of them after that.
	stopNode = 11 * time.Second

	// groupSignal is how long our own signal may come after the one that ended the
	// child, when both were sent to the whole process group.
	groupSignal = 500 * time.Millisecond
)

// Run runs the control plane until ctx ends (nil) or a part fails (an error
// that names it). It is the last thing that a process does: kube-controller-manager
// is gone when it returns, directory and ports are free when the process is.
func Run(ctx context.Context, config Config) error {
	ground, err := prepare(ctx, config)
	if err != nil {
		return err
	}
	if config.Node {
		host, err := network.Host(ground.nodeFolder())
		if err != nil {
			return err
		}
		defer host.Close()
	}
	store, err := etcd.Start(ctx, ground.dir.Path("etcd"), ground.dir.Path("run"))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer store.RemoveSockets()
	storing := launch(ctx, "etcd", store.Wait)

	run, err := ground.apiServer(ctx, store.Endpoint())
	if err != nil {
		return err
	}
	serving := launch(ctx, "kube-apiserver", run)
	if err := ground.untilHealthy(ctx, ground.url()+"/readyz", storing, serving); err != nil {
		// A kube-apiserver that is not up yet takes being stopped for a failure and
		// ends the process with it. It has nothing to finish: the process just ends.
		return unlessStopped(ctx, err)
	}
	defer store.Close()
	defer ground.stop(serving, stopAPIServer)

	managing := launch(ctx, "kube-controller-manager", func(ctx context.Context) error {
		return controllermanager.Supervise(ctx, ground.controllerManagerSettings(), ground.managerListener)
	})
	defer ground.stop(managing, stopControllerManager)

	if err := ground.writeAdminKubeconfig(); err != nil {
		return err
	}
	config.Log.Info("kube-apiserver is ready", "url", ground.url(), "kubeconfig", ground.adminKubeconfig())
	if err := ground.untilHealthy(ctx, ground.managerURL()+"/healthz", storing, serving, managing); err != nil {
		return unlessStopped(ctx, err)
	}
	config.Log.Info("kube-controller-manager is healthy", "url", ground.managerURL())
	if !config.Node {
		return watch(ctx, storing, serving, managing)
	}
	hosting := launch(ctx, "node", func(ctx context.Context) error { return node.Supervise(ctx, ground.nodeSettings()) })
	defer ground.stop(hosting, stopNode)
	return watch(ctx, storing, serving, managing, hosting)
}

// apiServer returns what runs kube-apiserver, in this process or in children.
func (g *ground) apiServer(ctx context.Context, etcd string) (func(context.Context) error, error) {
	settings := g.apiServerSettings(etcd)
	if g.config.RestartAPIServer {
		return func(ctx context.Context) error {
			return apiserver.Supervise(ctx, settings, g.listener, g.config.Log)
		}, nil
	}
	if settings.Program != "" {
		return func(ctx context.Context) error { return apiserver.RunProcess(ctx, settings, g.listener) }, nil
	}
	server, err := apiserver.New(ctx, settings, g.listener)
	if err != nil {
		return nil, err
	}
	return server.Run, nil
}

// watch returns when the user wants to stop (nil) or when a part has ended.
func watch(ctx context.Context, parts ...*part) error {
	ended := make(chan *part, len(parts))
	for _, p := range parts {
		go func() {
			select {
			case <-p.done:
				ended <- p
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case p := <-ended:
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(groupSignal):
			return p.reason()
		}
	}
}

// untilHealthy waits for url to answer, or for a part to end.
func (g *ground) untilHealthy(ctx context.Context, url string, parts ...*part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := watch(ctx, parts...); err != nil {
			cancel(err)
		}
	}()
	return g.probe.await(ctx, url)
}

func (g *ground) stop(p *part, within time.Duration) {
	if !p.stop(within) {
		g.config.Log.Warn("stopped waiting for it to finish", "component", p.name)
	}
}

func (g *ground) writeAdminKubeconfig() error {
	return kubeconfig.Write(g.adminKubeconfig(), g.url(), "credence-admin", g.files.Authority.Cert, g.files.AdminClient)
}

// unlessStopped returns nil when the user stopped the start: that is not a failure.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
