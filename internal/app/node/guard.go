package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/internal/filelock"
	"github.com/credence-id/credence/internal/node/guard"
)

// Guard is what the guard of a node needs.
type Guard struct {
	Listen, Runtime string // endpoints
	Kubeconfig      string // of which pods of the API are reviewed; empty: they are not
	guard.Config
}

// NewGuardCommand returns the command `guard`; it runs until its context is done, and logs to its standard error.
func NewGuardCommand() *cobra.Command {
	config := Guard{}
	command := &cobra.Command{
		Use:   "guard",
		Short: "Tighten the pods of a node that do not come from the API, and hold those that were admitted past their profile",
		Long: `Serve the Container Runtime Interface (v1) to the kubelet of this node, and pass its calls on to the container runtime.

Pods of the kubelet's own files and of http bypass the API, and with it admission. Their containers are tightened to a template
wherever they are weaker, and refused where they have something of the host, unless the pod is allowed by name and by the
digests of its images. All other calls pass unchanged.

With --kubeconfig a container of a pod from the API is created once the API has reviewed the pod: one whose profile has the mode
Enforce, and that lacks what it wants, was admitted while policies were off, and is held. Verdicts are kept beside the socket,
so that containers restart while the API is away; with a named pipe, in memory.

The guard is a service of the host: a pod could not start before the guard. The kubelet's containerRuntimeEndpoint and
imageServiceEndpoint are that of --listen.`,
		Example: `  # static pods as Pod Security has them in "restricted", those of a file excepted
  credence-node guard --node-name "$(hostname)" --allow /etc/credence/static-pods.yaml

  # and have pods from the API reviewed, as the kubelet's user
  credence-node guard --node-name "$(hostname)" --kubeconfig /etc/kubernetes/kubelet.conf`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			return RunGuard(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Listen, "listen", listenByDefault, "endpoint to serve the kubelet on: a unix socket, the one that systemd holds, or one that is made, with its folder, for root alone; or a named pipe of Windows, for administrators alone")
	flags.StringVar(&config.Runtime, "runtime", runtimeByDefault, "endpoint of the container runtime: a unix socket, or a named pipe of Windows")
	flags.StringVar(&config.Node, "node-name", "", "name of this node, as the kubelet has it: the names of static pods end with it (required)")
	flags.StringVar(&config.KubeletDir, "kubelet-dir", kubeletDirByDefault, "the kubelet's root directory")
	flags.StringVar(&config.Template, "template", guard.Restricted, "the least that containers have: "+guard.Restricted+", "+guard.Baseline+", or the `FILE` of a SecurityContextTemplate")
	flags.StringVar(&config.Allowed, "allow", "", "`FILE` of the pods that keep what they ask for, with the digests of their images (default: none)")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of a user of this node, such as the kubelet's: pods from the API are reviewed (default: they are not)")
	flags.StringSliceVar(&config.Unreviewed, "unreviewed-namespaces", []string{"kube-system", "credence-system"}, "with --kubeconfig: namespaces whose pods are not reviewed: those that the API and Credence itself need to start")
	return command
}

// ends are where the guard serves and the runtime listens, or the first flag that is wrong. Files are not flags: while they can't be read,
// containers must be stopped all the same.
func (c Guard) ends() (listen, runtime endpoint.Endpoint, err error) {
	if c.Node == "" {
		return nil, nil, errors.New("--node-name is required: the name of this node in the cluster")
	}
	if listen, err = endpoint.Parse(c.Listen); err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	if runtime, err = endpoint.Parse(c.Runtime); err != nil {
		return nil, nil, fmt.Errorf("--runtime: %w", err)
	}
	if listen == runtime {
		return nil, nil, fmt.Errorf("--listen and --runtime are both %s: give the guard an endpoint of its own", listen)
	}
	for flag, path := range map[string]string{"kubelet-dir": c.KubeletDir, "kubeconfig": c.Kubeconfig} {
		if !filepath.IsAbs(path) && (flag != "kubeconfig" || path != "") {
			return nil, nil, fmt.Errorf("--%s %q is not an absolute path", flag, path)
		}
	}
	return listen, runtime, nil
}

// inherited returns the socket that systemd holds for this process, or nil if it holds none. Connections wait there while no guard runs.
func inherited(path string) (net.Listener, error) {
	listeners, err := activation.Listeners()
	switch {
	case err != nil || len(listeners) == 0:
		return nil, err
	case len(listeners) > 1 || listeners[0] == nil || listeners[0].Addr().String() != path:
		return nil, fmt.Errorf("systemd holds other sockets than %s for this process: give that one alone as ListenStream", path)
	}
	return listeners[0], nil
}

// lockSocket makes the folder of a socket, and takes a lock: of two guards that start at once, each would take the socket of the other for one that a
// guard has left.
func lockSocket(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	if err := filelock.TakeOpen(lock); err != nil {
		_ = lock.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("another guard serves %s, or is about to end: stop it, or give another path", path)
		}
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	return lock, nil
}

// listenAt makes the guard the only one at an endpoint. The function releases that, once the listener is closed.
func listenAt(ctx context.Context, e endpoint.Endpoint) (net.Listener, func(), error) {
	socket, is := e.(endpoint.Socket)
	if !is {
		listener, err := e.Listen(ctx)
		return listener, func() {}, err
	}
	if listener, err := inherited(e.String()); listener != nil || err != nil {
		return listener, func() {}, err
	}
	lock, err := lockSocket(e.String())
	if err != nil {
		return nil, func() {}, err
	}
	listener, err := socket.Listen(ctx)
	return listener, func() { _ = lock.Close() }, err
}

// RunGuard serves the kubelet until ctx is done. An error is a configuration that cannot work.
func RunGuard(ctx context.Context, config Guard) error {
	listen, runtime, err := config.ends()
	if err != nil {
		return serving.Usage(err)
	}
	config.KubeletDir = filepath.Clean(config.KubeletDir)
	listener, release, err := listenAt(ctx, listen)
	defer release()
	switch {
	case err != nil && ctx.Err() != nil: // stopped before it served
		return nil
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	}
	if config.Kubeconfig != "" {
		reviews := &reviews{kubeconfig: config.Kubeconfig}
		config.Reviews = reviews
		// It serves meanwhile, and whatever comes of it: containers must be stopped all the same.
		go func() {
			if err := reviews.served(ctx); err != nil {
				config.Log.ErrorContext(ctx, "no pod of the API is started until this is mended, except those of --unreviewed-namespaces", "error", err)
			}
		}()
		if socket, is := listen.(endpoint.Socket); is { // a pipe is in no folder
			config.Verdicts = filepath.Join(filepath.Dir(string(socket)), "verdicts.json")
		}
	}
	proxy, err := guard.New(config.Config, runtime)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := config.Check(); err != nil {
		config.Log.ErrorContext(ctx, "nothing is created of pods that do not come from the API until this is mended", "error", err)
	}
	config.Log.InfoContext(ctx, "guard started", "node", config.Node, "endpoint", listen.String(), "runtime", runtime.String(), "template", config.Template, "allow", config.Allowed, "kubeconfig", config.Kubeconfig)
	if err := proxy.Serve(ctx, listener); err != nil {
		return err
	}
	config.Log.Info("guard stopped")
	return nil
}
