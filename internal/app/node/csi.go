package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/internal/filelock"
	"github.com/credence-id/credence/internal/node/csi"
	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/workloadidentities"
)

// CSI is what the driver of volumes needs.
type CSI struct {
	Kubeconfig string // of which the server and its authority are used; empty: those of the pod's cluster
	Node       string
	KubeletDir string
	Audience   string // of the pods' tokens that it sends; empty: that of the API server
	Registries string // file of the registries of which volumes may have passwords; empty: of none
	Window     renewal.Window
	serving.Health
	Log *slog.Logger
}

// socket is the driver's, below the kubelet's folder. Its name is short, as paths of sockets are.
const socket = "plugins_registry/credence.sock"

// NewCSICommand returns the command `csi`; it runs until its context is done, and logs to its standard error.
func NewCSICommand() *cobra.Command {
	config := CSI{}
	command := &cobra.Command{
		Use:   "csi",
		Short: "Deliver tokens of workload identities into volumes of pods, without Secrets",
		Long: `Serve volumes of the CSI driver ` + csi.Name + ` on this node, and register with its kubelet.

The kubelet brings a service-account token of the pod with each volume. With that token, and so as the pod's service
account, the driver requests the token of the identity that the volume names, and writes it into memory that only
the pod mounts. It has no right of its own to any token: nothing but the address of the API is read from a kubeconfig.

Tokens are renewed at a point of their lifetime that is drawn anew each time. Tokens of pods are in this process's
memory alone: after a restart, renewal waits for the kubelet's next publication, about a minute.`,
		Example: `  # in a pod on the node, with the cluster's certificate authority mounted
  credence-node csi --node-name "$NODE_NAME"

  # a kubelet with another folder
  credence-node csi --node-name node-1 --kubelet-dir /data/kubelet --kubeconfig /etc/credence/server.kubeconfig

  # identities of another cluster: tokens by the agent of this one
  credence-node csi --node-name node-1 --kubeconfig /etc/credence/agent.kubeconfig --audience ` + v1alpha1.AudienceAgent,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			return RunCSI(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file with the address of the API and its authority; credentials in it are not used (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.Node, "node-name", "", "name of this node in the cluster (required)")
	flags.StringVar(&config.KubeletDir, "kubelet-dir", kubeletDirByDefault, "the kubelet's root directory")
	flags.StringVar(&config.Audience, "audience", "", "audience of the service-account tokens of pods that are sent to the API, among those of the CSIDriver object; "+v1alpha1.AudienceAgent+" where --kubeconfig has the address of an agent (default: that of the API server)")
	flags.StringVar(&config.Registries, "registries", "", "file of the registries whose passwords volumes may have in config.json (default: none); a changed one counts from the next passwords on")
	flags.Float64Var(&config.Window.From, "renew-from", 0.6, "part of a token's lifetime from which it may be renewed")
	flags.Float64Var(&config.Window.To, "renew-to", 0.8, "part of a token's lifetime by which it is renewed")
	config.Health.AddFlags(flags)
	return command
}

// complete fills in what is unset, and names the first flag that is wrong.
func (c CSI) complete() (CSI, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	switch info, err := os.Stat(c.KubeletDir); {
	case c.Node == "":
		return c, errors.New("--node-name is required: the name of this node in the cluster")
	case !filepath.IsAbs(c.KubeletDir):
		return c, fmt.Errorf("--kubelet-dir %q is not an absolute path", c.KubeletDir)
	case err != nil:
		return c, fmt.Errorf("--kubelet-dir: %w", err)
	case !info.IsDir():
		return c, fmt.Errorf("--kubelet-dir %s is not a folder", c.KubeletDir)
	}
	var err error
	if c.Window, err = c.Window.Complete(); err != nil {
		return c, fmt.Errorf("--renew-from, --renew-to: %w", err)
	}
	err = c.Health.Complete()
	return c, err
}

// RunCSI serves volumes until ctx is done. An error is a configuration that cannot work, or a kubelet that refuses the driver.
func RunCSI(ctx context.Context, config CSI) error {
	if err := volumes.Supported(); err != nil {
		return err
	}
	config, err := config.complete()
	if err != nil {
		return serving.Usage(err)
	}
	cluster, err := reached(config.Kubeconfig)
	if err != nil {
		return err
	}
	var registries func() (registry.Config, error)
	if config.Registries != "" {
		registries = registry.File(config.Registries).Read
		if _, err := registries(); err != nil {
			return serving.Usage(fmt.Errorf("--registries: %w", err))
		}
	}
	recorder := csi.NewRecorder(clock.RealClock{})
	driver := csi.New(csi.Config{
		Node: config.Node, Tokens: workloadidentities.NewSelfTokens(cluster), Audience: config.Audience, Memory: volumes.Tmpfs{Swapped: warnOnce(config.Log)}, Adapters: targets.For, Registries: registries,
		Window: config.Window, Clock: clock.RealClock{}, Random: rand.Float64, Recorder: recorder, Log: config.Log,
	})
	metrics := serving.NewRegistry()
	metrics.MustRegister(recorder)
	path := filepath.Join(config.KubeletDir, socket)
	lock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	listener, err := endpoint.Socket(path).Listen(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // stopped before it served
		return nil
	case err != nil:
		return fmt.Errorf("--kubelet-dir: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := config.Health.Start(ctx, group, driver.Ready, metrics, cluster, config.Log); err != nil {
		return errors.Join(err, listener.Close())
	}
	config.Log.InfoContext(ctx, "driver started", "driver", csi.Name, "node", config.Node, "socket", path, "api", cluster.Host)
	group.Go(func() error { return driver.Serve(ctx, listener) })
	group.Go(func() error { return driver.Run(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	config.Log.Info("driver stopped")
	return nil
}

// warnOnce returns the warning of memory that may be swapped.
func warnOnce(log *slog.Logger) func() {
	return sync.OnceFunc(func() {
		log.Warn("the kernel can't keep the memory of volumes out of swap: tokens may be written to the node's swap; it can from Linux 6.4 on, and where the driver is root of the host's user namespace; until then an admin turns swap off on this node, or encrypts it")
	})
}

// lockFolder takes the lock of the kubelet's folder of plugins. Of two drivers that start at once, each would take the socket of the other
// for one that a driver has left. The folder itself is locked, as the kubelet looks at each file in it.
func lockFolder(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("make the kubelet's folder of plugins: %w", err)
	}
	opened, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("lock the kubelet's folder of plugins: %w", err)
	}
	if err := filelock.TakeOpen(opened); err != nil {
		_ = opened.Close()
		if errors.Is(err, filelock.ErrHeld) {
			err = errors.New("another driver of this node runs, or is about to end: stop it, or start this one again once it has ended")
		}
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return opened, nil
}

// authority is the certificate authority of a pod's cluster. A pod without a token of its own has it from the ConfigMap kube-root-ca.crt.
const authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// reached is how the API is reached: by a kubeconfig, or as pods reach that of their cluster. There are no credentials in it.
func reached(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return serving.Anonymous("--kubeconfig", kubeconfig, userAgent)
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, serving.Usage(errors.New("--kubeconfig is needed outside of a cluster: it has the address of the API"))
	}
	if _, err := os.Stat(authority); err != nil {
		return nil, fmt.Errorf("read the cluster's certificate authority: %w: mount the ConfigMap kube-root-ca.crt there, or set --kubeconfig", err)
	}
	return &rest.Config{Host: "https://" + net.JoinHostPort(host, port), TLSClientConfig: rest.TLSClientConfig{CAFile: authority}, UserAgent: userAgent}, nil
}

const userAgent = "credence-node/csi"
