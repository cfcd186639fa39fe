package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	kubeversion "k8s.io/component-base/version"

	"github.com/credence-id/credence/devcluster/internal/apiserver"
	"github.com/credence-id/credence/devcluster/internal/controllermanager"
	"github.com/credence-id/credence/devcluster/internal/controlplane"
	"github.com/credence-id/credence/devcluster/internal/node"
)

// New is the command. Its log goes to stderr.
func New(stdout, stderr io.Writer) *cobra.Command {
	config := controlplane.Config{
		Now: time.Now,
		Log: slog.New(slog.NewTextHandler(stderr, nil)),
	}
	root := &cobra.Command{
		Use:   "credence-devcluster --dir DIR",
		Short: "A real Kubernetes control plane on this machine",
		Long: `Runs the real kube-apiserver with its etcd, and the real
kube-controller-manager, in the foreground until SIGTERM or Ctrl-C; with --node
also a kube-scheduler, a kubelet, a kube-proxy and a CoreDNS, so that pods run.

All state is in DIR and outlives any kind of stop. The cluster is ready when
https://127.0.0.1:PORT/readyz answers 200 (authority: DIR/pki/ca.crt); then
DIR/admin.kubeconfig is there. Everything listens on 127.0.0.1 only.`,
		Version:       fmt.Sprintf("Kubernetes %s, etcd v%s", kubeversion.Get().GitVersion, etcdversion.Version),
		Args:          func(cmd *cobra.Command, args []string) error { return usage(cobra.NoArgs(cmd, args)) },
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), config)
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.CompletionOptions.DisableDefaultCmd = true
	addFlags(root, &config)
	root.AddCommand(supervised(controllermanager.Subcommand, controllermanager.Run), supervised(apiserver.Subcommand, apiserver.RunChild), loadImage(), importImages(), checkNode(), cleanNode())
	root.AddCommand(children()...)
	return root
}

var errNoDir = usage(errors.New("no directory for the cluster's state: give one with --dir"))

// UsageError is an error in flags or arguments: what starts the command need not try again.
type UsageError struct{ error }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

func addFlags(root *cobra.Command, config *controlplane.Config) {
	flags := root.Flags()
	flags.SortFlags = false
	flags.StringVar(&config.Dir, "dir", "", "directory of all state, made when missing (required)")
	flags.IntVar(&config.Port, "port", 6443, "port of kube-apiserver; 0 takes a free one")
	flags.IntVar(&config.ControllerManagerPort, "controller-manager-port", 0,
		"port of kube-controller-manager's /healthz and /metrics; 0 takes a free one (its URL is in DIR/controller-manager.url)")
	flags.BoolVar(&config.Node, "node", false, "also run a node, so that pods run (Linux, as root, with containerd, runc, busybox, nftables and CNI plugins installed)")
	flags.IntSliceVar(&config.SharedPorts, "shared-port", nil, "port of 127.0.0.1 that pods of the node reach at their own 127.0.0.1, besides kube-apiserver's (repeatable)")
	flags.StringVar(&config.CSIDriver, "csi-driver", "", "program that the node runs to serve volumes, as PROGRAM csi --node-name NAME --kubelet-dir DIR --kubeconfig FILE, and --registries of --image-registries; FILE has no credentials")
	flags.StringVar(&config.ImageCredentials, "image-credentials", "", "program that the node's kubelet runs for credentials of images; PROGRAM kubelet-config --registries FILE --kubeconfig FILE --audience AUDIENCE prints its CredentialProviderConfig")
	flags.StringVar(&config.ImageRegistries, "image-registries", "", "file of the registries that --image-credentials is for")
	flags.StringVar(&config.Guard, "guard", "", "program that the node's kubelet reaches containerd through, as PROGRAM guard --listen SOCKET --runtime SOCKET --node-name NAME --kubelet-dir DIR --template TEMPLATE --kubeconfig FILE --allow FILE")
	flags.StringVar(&config.GuardTemplate, "guard-template", "restricted", "--template of --guard")
	flags.StringVar(&config.GuardAllow, "guard-allow", "", "--allow of --guard")
	flags.StringVar(&config.AuthenticationConfigFile, "authentication-config", "",
		"AuthenticationConfiguration file (apiserver.config.k8s.io/v1), reloaded on change")
	flags.StringVar(&config.Programs, "kubernetes-programs", os.Getenv("CREDENCE_KUBERNETES_PROGRAMS"),
		"folder with kube-apiserver and kube-controller-manager of another version of Kubernetes, to run in place of those in this program")
	flags.StringVar(&config.FeatureGates, "feature-gates", "", "Name=true|false,… for both components")
	flags.StringVar(&config.AuditPolicyFile, "audit-policy-file", "", "audit Policy file (default: everything at level Metadata)")
	flags.StringArrayVar(&config.APIServerArgs, "apiserver-arg", nil, "one more flag of kube-apiserver, as --apiserver-arg=--v=2 (repeatable)")
	flags.StringArrayVar(&config.ControllerManagerArgs, "controller-manager-arg", nil, "one more flag of kube-controller-manager (repeatable)")
	flags.BoolVar(&config.RestartAPIServer, "restart-apiserver", false, "run kube-apiserver as a process of its own, and again whenever it ends")
	_ = flags.MarkHidden("restart-apiserver") // for tests of outages
	// Kubernetes has a global flag of this name and another type, which would win over cobra's own.
	flags.Bool("version", false, "print the versions of Kubernetes and etcd")
}

func run(ctx context.Context, config controlplane.Config) error {
	if config.Dir == "" {
		return errNoDir
	}
	if config.Node {
		folder, err := nodeFolder(config.Dir)
		if err != nil {
			return err
		}
		if err := node.Check(folder); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	// A second signal is not waited for.
	context.AfterFunc(ctx, stop)
	return controlplane.Run(ctx, config)
}

// supervised is the child's side of a part of the control plane.
func supervised(subcommand string, run func(context.Context, []string) error) *cobra.Command {
	return &cobra.Command{
		Use:                subcommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return run(ctx, args)
		},
	}
}
