package get

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

// get is "get": identities, and where their tokens are.
type get struct {
	*screen.Terminal
	connection *connection.Flags

	all, noHeaders                       bool
	output, selector, identityKubeconfig string
}

// New is "get".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	g := &get{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "get [IDENTITY...]",
		Short: "List identities, where each is delivered, and until when their tokens are valid",
		Long: `List WorkloadIdentities, and for each the Secrets that carry its tokens: for which
service account and how many pods, when the token there expires (by its own exp
claim), when it is renewed, and the newest Warning on the Secret or the identity.
No token is printed. Each line is one Secret; an identity that is delivered
nowhere has a line too, and so has one that Secrets name and that does not exist, or
is not found in the cluster of the kubeconfig: then it may be in another one.

The Secrets are looked for in all namespaces. Where you may not list them, or pods,
or Events, the rest is shown, with what the identity's status has of its Secrets, and
standard error lists what was left out.

-o wide adds the user on whose behalf a Secret is filled, the context that each
token names, the ID of its key, audiences, subject, and times in full. Where the agent delivers from
one cluster into another, --kubeconfig is the cluster of the workloads, and
--identity-kubeconfig that of the identities.`,
		Example: `  credence get -n my-team
  credence get my-app -n my-team -o wide
  credence get -A -o json

  # Identities in another cluster
  credence get -A --kubeconfig workload.yaml --identity-kubeconfig identity.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := cluster.CheckName(name); err != nil {
					return command.Usage(cmd, err.Error())
				}
			}
			return nil
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "List the identities of all namespaces")
	command.Output(cmd, &g.output, "What to print: table, wide, name, json or yaml", "table", "wide", "name", "json", "yaml")
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "List the identities alone whose labels match this selector, such as team=a,tier!=test")
	cmd.Flags().BoolVar(&g.noHeaders, "no-headers", false, "Print no header line")
	cmd.Flags().StringVar(&g.identityKubeconfig, "identity-kubeconfig", "", connection.IdentityKubeconfigHelp)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return kube.CompleteNames(cmd.Context(), (*cluster.API).IdentityNames, "")
	}
	return cmd
}

func (g *get) run(cmd *cobra.Command, names []string) error {
	if g.all && len(names) > 0 {
		return command.Usage(cmd, "-A lists the identities of all namespaces, and takes no names of one")
	}
	if _, err := labels.Parse(g.selector); err != nil || g.selector != "" && len(names) > 0 {
		return command.Usage(cmd, "-l takes a selector of labels such as team=a, and no names beside it")
	}
	namespace, home, err := g.connection.Scope(cmd, g.all)
	if err != nil {
		return err
	}
	both, err := g.connection.OpenBoth(g.ErrOut, g.identityKubeconfig)
	if err != nil {
		return err
	}
	stop := g.WaitingFor("the API server " + both.Workload.Host)
	found, err := inventory.Read(cmd.Context(), both, namespace, names, g.selector, home)
	stop()
	if err != nil {
		request := connection.Request{Namespace: namespace, All: g.all, Program: cmd.Root().DisplayName(), TokenFile: both.Identity.TokenFile}
		return request.Failure("read identities", err)
	}
	if both.Identity == both.Workload && slices.ContainsFunc(found.Identities, func(i *inventory.Identity) bool { return i.Missing && !i.Gone() }) {
		found.Note("identities that are not found may be in another cluster, whose tokens are delivered here: give its kubeconfig by --identity-kubeconfig")
	}
	if !cmd.Flags().Changed("namespace") {
		found.Note(found.Narrow)
	}
	err = g.print(found, namespace, cmd.CommandPath())
	g.Notes(found.Notes)
	return err
}

func (g *get) print(found *inventory.Report, namespace, command string) error {
	if g.output == "json" || g.output == "yaml" {
		return screen.Object(g.Out, g.output, found)
	}
	if len(found.Identities) == 0 {
		text := "no identities found\n"
		if namespace != "" {
			text = fmt.Sprintf("no identities found in namespace %s\nhint: list those of all namespaces by: %s -A\n", namespace, command)
		}
		_, err := io.WriteString(g.ErrOut, text)
		return err
	}
	if g.output == "name" {
		for _, identity := range found.Identities {
			fmt.Fprintf(g.Out, "workloadidentity.%s/%s\n", v1alpha1.GroupName, identity.Name)
		}
		return nil
	}
	return g.printTable(found)
}

func (g *get) printTable(found *inventory.Report) error {
	wide := g.output == "wide"
	header := []string{"NAME", "TYPE", "SECRET", "ACCOUNT", "PODS", "EXPIRES", "RENEWS"}
	if g.all {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if wide {
		header = append(header, "REQUESTED BY", "CONTEXT", "KEY", "AUDIENCES", "SUBJECT")
	}
	rows := [][]string{append(header, "LAST FAILURE")}
	for _, identity := range found.Identities {
		deliveries := identity.Deliveries
		if len(deliveries) == 0 {
			deliveries = []*inventory.Delivery{nil}
		}
		for _, d := range deliveries {
			rows = append(rows, g.row(found, identity, d, wide))
		}
	}
	if g.noHeaders {
		rows = rows[1:]
	}
	return screen.Table(g.Out, rows...)
}

func (g *get) row(found *inventory.Report, identity *inventory.Identity, d *inventory.Delivery, wide bool) []string {
	kind := identity.Type
	switch {
	case identity.Gone():
		kind = "(does not exist)"
	case identity.Missing:
		kind = "(not found)"
	}
	row := []string{identity.Name, kind}
	if g.all {
		row = append([]string{identity.Namespace}, row...)
	}
	failure := identity.LastFailure
	switch {
	case d == nil && !found.Seen && len(identity.Reports) > 0:
		row = append(row, g.reported(identity, wide)...)
		failure = reportedFailure(identity)
	case d == nil && !found.Seen:
		row = append(row, "?", "?", "?", "?", "?")
	case d == nil:
		row = append(row, "-", "-", "-", "-", "-")
	default:
		failure = d.Failure(identity)
		row = append(row, d.Namespace+"/"+d.Secret, wording.OrDash(d.ServiceAccount), podCount(d), g.expiry(d, wide), g.renewal(d, wide))
	}
	if wide {
		requestedBy, context, key := "-", "-", "-"
		if d != nil {
			requestedBy, context, key = wording.OrDash(d.RequestedBy), d.Context, wording.OrDash(d.KeyID)
		}
		row = append(row, requestedBy, context, key, strings.Join(identity.Audiences, ","), wording.OrDash(identity.Subject))
	}
	return append(row, g.warning(d, failure, wide))
}

// reported is what the status of an identity has of its Secrets, for those who may not list these.
func (g *get) reported(identity *inventory.Identity, wide bool) []string {
	var secrets, delivered int32
	var soonest *metav1.Time
	for _, report := range identity.Reports {
		secrets, delivered = secrets+report.Secrets, delivered+report.Delivered
		if report.Expires != nil && (soonest == nil || report.Expires.Before(soonest)) {
			soonest = report.Expires
		}
	}
	d := &inventory.Delivery{}
	if soonest != nil {
		d.Expires = &soonest.Time
	}
	return []string{fmt.Sprintf("(%d of %d)", delivered, secrets), "?", "?", g.expiry(d, wide), "?"}
}

func reportedFailure(identity *inventory.Identity) *inventory.Warning {
	for _, report := range identity.Reports {
		if report.Failure != nil {
			return &inventory.Warning{Time: report.ReportTime.Time, Reason: report.Failure.Reason, Message: report.Failure.Message}
		}
	}
	return identity.LastFailure
}

func podCount(d *inventory.Delivery) string {
	if d.Pods == nil {
		return "?"
	}
	return strconv.Itoa(*d.Pods)
}

// word words a time by its distance, or in full.
func (g *get) word(at time.Time, wide bool) string {
	if wide {
		return wording.Moment(at.UTC(), g.Now())
	}
	return wording.Age(&metav1.Time{Time: at}, g.Now())
}

func (g *get) expiry(d *inventory.Delivery, wide bool) string {
	switch {
	case d.Missing:
		return "no Secret"
	case d.Expires == nil:
		return "no token"
	case !d.Expires.After(g.Now()):
		return g.word(*d.Expires, wide) + " (expired)"
	default:
		return g.word(*d.Expires, wide)
	}
}

func (g *get) renewal(d *inventory.Delivery, wide bool) string {
	switch {
	case d.OrphanedSince != nil:
		return "never: the identity is gone"
	case d.Renews == nil:
		return "-"
	case !d.Renews.After(g.Now()):
		return g.word(*d.Renews, wide) + " (overdue)"
	case d.ReleasedSince != nil:
		return g.word(*d.Renews, wide) + " (released)"
	default:
		return g.word(*d.Renews, wide)
	}
}

// maxWarning is how much of a message a table shows.
const maxWarning = 60

func (g *get) warning(d *inventory.Delivery, failure *inventory.Warning, wide bool) string {
	text := ""
	switch {
	case d != nil && d.Problem != "":
		text = d.Problem
	case failure != nil:
		text = fmt.Sprintf("%s: %s: %s", g.word(failure.Time, wide), failure.Reason, failure.Message)
	default:
		return "-"
	}
	if runes := []rune(text); !wide && len(runes) > maxWarning {
		return string(runes[:maxWarning]) + "…"
	}
	return text
}
