package drift

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/drift/survey"
	"github.com/credence-id/credence/internal/wording"
)

// look is "drift": it decides again about pods that run.
type look struct {
	*screen.Terminal
	connection *connection.Flags

	all                        bool
	output, identityKubeconfig string
}

// New is "drift".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	l := &look{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "List running pods that would be other pods today, or refused",
		Long: `Decide again about each running pod, as it was submitted, with its service account,
identities, rights, target systems and GMSACredentialSpecs as they are now, by the rules
of the webhooks. Nothing is created or changed. A pod is

  current           the same pod would be made today
  stale             another one would be: the first field that differs, its value, and
                    the value that it would have
  refused now       none would be, for the reason
  identity missing  none would be, as an identity or a GMSACredentialSpec does not exist
  unknown           you may not read what decides; the missing right is noted

Current pods are counted, all others are listed. Pods that have ended are left out.

Exit codes: 0 all are current; 1 a pod is not, or the namespace does not exist; 2 wrong
usage; 3 none is known to differ, and a pod is unknown, -A could look at one namespace
alone, or a server could not be reached.`,
		Example: `  credence drift -n my-team
  credence drift -A -o json`,
		Args:        command.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "Decide about the pods of all namespaces")
	command.Output(cmd, &l.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.Flags().StringVar(&l.identityKubeconfig, "identity-kubeconfig", "", connection.IdentityKubeconfigHelp)
	return cmd
}

func (l *look) run(cmd *cobra.Command) error {
	namespace, home, err := l.connection.Scope(cmd, l.all)
	if err != nil {
		return err
	}
	both, err := l.connection.OpenBoth(l.ErrOut, l.identityKubeconfig)
	if err != nil {
		return err
	}
	stop := l.WaitingFor("the API server " + both.Workload.Host)
	report, err := survey.Read(cmd.Context(), both, namespace, home, l.progress())
	if err == nil && namespace != "" && report.Total == 0 {
		err = exists(cmd.Context(), both.Workload, namespace)
	}
	stop()
	if err != nil {
		return connection.Request{Namespace: namespace, All: l.all, Program: cmd.Root().DisplayName()}.ObjectFailure("look at pods", err)
	}
	if err := l.print(report); err != nil {
		return err
	}
	l.Notes(report.Notes)
	switch {
	case report.Drifted() > 0:
		return &command.Failure{Code: command.ExitRefused}
	case report.States[drift.Unknown] > 0 || report.Partial:
		return &command.Failure{Code: command.ExitOutage}
	}
	return nil
}

// exists is an error if a namespace is known not to exist: it has no pods either, and is probably a slip.
func exists(ctx context.Context, api *cluster.API, namespace string) error {
	var found metav1.PartialObjectMetadata
	err := api.Get(ctx, &found, cluster.Place{Resource: "namespaces", Name: namespace})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// progress notes every two seconds how many pods were looked at.
func (l *look) progress() func(pods int) {
	const interval = 2 * time.Second
	last := l.Now()
	return func(pods int) {
		if now := l.Now(); now.Sub(last) >= interval {
			last = now
			fmt.Fprintf(l.ErrOut, "looked at %s ...\n", wording.Plural(pods, "pod", "pods"))
		}
	}
}

func (l *look) print(report *survey.Report) error {
	if l.output != "text" {
		return screen.Object(l.Out, l.output, report)
	}
	var text strings.Builder
	for _, pod := range report.Pods {
		fmt.Fprintf(&text, "%s/%s: %s\n", pod.Namespace, pod.Name, wording.OneLine(pod.String()))
	}
	fmt.Fprintf(&text, "%s: %s\n", wording.Plural(report.Total, "pod", "pods"), counts(report))
	_, err := io.WriteString(l.Out, wording.Printable(text.String()))
	return err
}

// counts lists the states that there are pods of, and the current ones always.
func counts(report *survey.Report) string {
	var parts []string
	for _, state := range drift.States() {
		if n := report.States[state]; n > 0 || state == drift.Current {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}
