//go:build unix

package up

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/progress"
)

const defaultDir = ".credence"

// NewCommands returns the commands up, down and status. Their errors are for the caller to print; each is one line that
// names what is wrong and what to do.
func NewCommands(streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{upCommand(streams), downCommand(streams), statusCommand(streams)}
}

type upFlags struct {
	dir    string
	port   int
	detach bool
	node   bool
	// storage is where the API server keeps its objects.
	storage string
	// delivery is how tokens come to pods.
	delivery string
	// imageRegistries is the file of the registries whose images pods of the node pull as their identities.
	imageRegistries string
	// guard is what static pods of the node are tightened to, and guardAllow the file of those that are not.
	guard, guardAllow string
	// extra are arguments for components, each COMPONENT=ARGUMENT.
	extra []string
	// supervise is set by --detach for the process that stays.
	supervise bool
}

func upCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Run Credence, and a Kubernetes cluster that it serves, on this machine",
		Long: `Starts a real Kubernetes API, Credence's aggregated API server and its discovery
server as processes of this machine, and returns to you once a token was issued
and verified. Ctrl-C stops all of them. All state is in DIR and outlives any kind
of stop. Everything listens on 127.0.0.1 only.

DIR/kubeconfig, DIR/ca.crt and DIR/endpoints.json tell where everything is,
DIR/startup.json how long each part of the last start took.`,
		Example: `  # Run in this terminal until Ctrl-C.
  credence up

  # Run in the background; returns when everything is ready.
  credence up --detach

  # As root: with a node on which pods run.
  sudo credence up --node

  # A second installation beside the first.
  credence up --dir /tmp/other --port 18443 --detach

  # Keys that rotate as one watches.
  credence up --arg controller=--key-rotation-period=10m --arg controller=--key-publish-period=1m \
    --arg controller=--max-age=1m --arg discovery=--max-age=1m --arg controller=--clock-skew=1s \
    --arg controller=--token-max-duration=10m --arg controller=--key-leeway=1s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			return up(cmd.Context(), flags, streams)
		},
	}
	set := command.Flags()
	set.StringVar(&flags.dir, "dir", defaultDir, "directory of all state, made when missing")
	set.IntVar(&flags.port, "port", 0, fmt.Sprintf("first of %d ports of 127.0.0.1 to use, %d to %d; it belongs to the issuer's URL and stays as it was at the first start (default %d)",
		home.PortSpan, home.LowestPort, home.HighestPort, home.DefaultPort))
	set.StringVar(&flags.storage, "storage", "", "where identities are stored: cluster (in the API of the cluster) or embedded (in an etcd of Credence's own); it stays as it was at the first start (default "+home.Embedded+")")
	set.BoolVar(&flags.detach, "detach", false, "stay in the background; return when everything is ready")
	set.BoolVar(&flags.node, "node", false, "also run a node, so that pods run, with a network of their own (Linux, as root, with containerd, runc, busybox, nftables and CNI plugins installed)")
	set.StringVar(&flags.delivery, "delivery", v1alpha1.DeliverySecret, "how tokens come to pods in this run: secret (in Secrets) or csi (in volumes that are not stored, on the node of --node); a namespace chooses by its label "+v1alpha1.LabelNamespaceDelivery)
	set.StringVar(&flags.imageRegistries, "image-registries", "", "with --node: `FILE` of the registries whose images are pulled by the identity of a pod's service account")
	set.StringVar(&flags.guard, "guard", "", "with --node: a guard between kubelet and containerd tightens static pods to a `TEMPLATE`: restricted, baseline, or the file of a SecurityContextTemplate")
	set.StringVar(&flags.guardAllow, "guard-allow", "", "with --guard: `FILE` of the static pods that keep what they ask for, with the digests of their images")
	set.StringArrayVar(&flags.extra, "arg", nil, "`COMPONENT=ARGUMENT`: a further argument for a component of this run ("+strings.Join(names(), ", ")+"), such as controller=--key-rotation-period=1h; may be repeated")
	set.BoolVar(&flags.supervise, "supervise", false, "report progress to file descriptor 3")
	_ = set.MarkHidden("supervise")
	complete := func(flag string, directive cobra.ShellCompDirective, words ...string) {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, directive))
	}
	complete("storage", cobra.ShellCompDirectiveNoFileComp, home.InCluster, home.Embedded)
	complete("delivery", cobra.ShellCompDirectiveNoFileComp, v1alpha1.Deliveries()...)
	complete("guard", cobra.ShellCompDirectiveDefault, guardTemplates()...) // or a file
	return command
}

// check returns the arguments of --arg by component, or what is wrong with the flags.
func (f upFlags) check() (map[string][]string, error) {
	if !slices.Contains(v1alpha1.Deliveries(), f.delivery) {
		return nil, fmt.Errorf("--delivery %q is not a way in which tokens come to pods: give %s", f.delivery, strings.Join(v1alpha1.Deliveries(), " or "))
	}
	if err := home.Check(f.port, f.storage); err != nil {
		return nil, err
	}
	return extraArguments(f.extra)
}

func up(ctx context.Context, flags upFlags, streams genericiooptions.IOStreams) error {
	if ctx == nil {
		ctx = context.Background()
	}
	extra, err := flags.check()
	if err != nil {
		return usageError{err}
	}
	dir, err := home.Resolve(flags.dir)
	if err != nil {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	programs, err := locate(executable)
	if err != nil {
		return err
	}
	here := installation{dir: dir, extra: extra, node: flags.node, delivery: flags.delivery}
	if err := here.locateNode(executable, flags.imageRegistries); err != nil {
		return err
	}
	if err := here.setGuard(flags.guard, flags.guardAllow); err != nil {
		return err
	}
	// The process that stays need not look once more.
	if flags.node && !flags.supervise {
		if err := checkNode(ctx, programs, dir); err != nil {
			return err
		}
	}
	if err := dir.Prepare(); err != nil {
		return err
	}
	r := &run{installation: here, programs: programs, now: time.Now, storage: flags.storage, watches: watchesLeft}
	switch {
	case flags.supervise:
		return superviseDetached(ctx, r, flags.port, streams)
	case flags.detach:
		return detach(ctx, r, executable, flags, streams)
	default:
		return superviseHere(ctx, r, flags.port, streams)
	}
}

// superviseHere runs until Ctrl-C, with progress for the user who started it.
func superviseHere(ctx context.Context, r *run, port int, streams genericiooptions.IOStreams) error {
	first, second, release := interrupts(ctx)
	defer release()
	sink, closeSink := display(streams, r.now)
	defer closeSink()
	r.tracker = progress.NewTracker(sink, r.now)
	r.settled = func(r *run) error {
		r.tracker.Note("ready; Ctrl-C stops everything")
		return writeSummary(streams.Out, r.installation)
	}
	return r.hold(first, second, port)
}

// display shows progress on stderr, as stdout is for results.
func display(streams genericiooptions.IOStreams, now func() time.Time) (sink progress.Sink, closeSink func()) {
	if !progress.IsTerminal(streams.ErrOut) {
		return progress.NewLines(streams.ErrOut), func() {}
	}
	terminal := progress.NewTerminal(streams.ErrOut, now)
	return terminal, terminal.Close
}
