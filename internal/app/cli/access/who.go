package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// who is "access who": it lists the subjects that can become an account.
type who struct {
	*screen.Terminal
	connection *connection.Flags

	output string
}

func newWho(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	w := &who{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "who ACCOUNT",
		Short: "List the users who can become a service account, and what that is worth",
		Long: `List the users, groups and service accounts that can become a service account, each with
the way and the binding that gives it: use, impersonation, tokens of the account,
reading or making Secrets with its tokens, exec and attach in pods (of the namespace,
whatever their account), ephemeral containers, pods, templates, and the kubelet's API
through nodes/proxy. Where the namespace enforces use, ways that need it as well are
left out: their users have use.

Then the WorkloadIdentities and GMSACredentialSpecs that the account may use.

It is read from Roles, ClusterRoles and their bindings. Rights of other authorizers
cannot be listed: those of nodes, and of webhooks that a cluster has beside RBAC. Users
who may write roles and bindings can give themselves more, and are not listed for it.`,
		Example: `  credence access who cart -n shop
  credence access who cart -n shop -o json`,
		Args:              command.ExactlyOne("the name of a service account"),
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(cmd, args[0]) },
		ValidArgsFunction: completeAccounts(kube, 0, 1),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	command.Output(cmd, &w.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

// whoAnswer is what "access who" prints.
type whoAnswer struct {
	Namespace      string          `json:"namespace"`
	ServiceAccount string          `json:"serviceAccount"`
	Mode           string          `json:"mode"`
	Holders        []access.Holder `json:"holders"`
	MayUse         worth           `json:"mayUse"`
	Notes          []string        `json:"notes"`
}

func (w *who) run(cmd *cobra.Command, name string) error {
	account, err := oneAccount(cmd, w.connection, name)
	if err != nil {
		return err
	}
	api, err := w.connection.Open(w.ErrOut)
	if err != nil {
		return err
	}
	stop := w.WaitingFor("the API server " + api.Host)
	answer, err := w.find(cmd.Context(), &facts{api: api, account: account})
	stop()
	if err != nil {
		return connection.Request{Namespace: account.Namespace, Program: cmd.Root().DisplayName()}.ObjectFailure("read who can become service account "+account.String(), err)
	}
	if w.output != "text" {
		return screen.Object(w.Out, w.output, answer)
	}
	return w.print(answer)
}

func (w *who) find(ctx context.Context, f *facts) (*whoAnswer, error) {
	if _, err := f.api.ServiceAccountUID(ctx, f.account.Namespace, f.account.Name); err != nil {
		return nil, err
	}
	mode, err := f.mode(ctx)
	if err != nil {
		return nil, err
	}
	rights, err := f.rights(ctx)
	if err != nil {
		return nil, err
	}
	tokens, err := f.tokens(ctx)
	if err != nil {
		return nil, err
	}
	mayUse, err := f.worth(ctx, rights)
	if err != nil {
		return nil, err
	}
	holders := rights.CanBecome(f.account, tokens, mode)
	return &whoAnswer{f.account.Namespace, f.account.Name, mode, append([]access.Holder{}, holders...), mayUse, append([]string{}, f.notes...)}, nil
}

func (w *who) print(answer *whoAnswer) error {
	fmt.Fprintf(w.Out, "service account %s/%s\nmode %s\n\n", answer.Namespace, answer.ServiceAccount, modeText(answer.Mode))
	rows := [][]string{{"SUBJECT", "WAYS", "BY"}}
	for rest := answer.Holders; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(h access.Holder) bool { return h.Subject != rest[0].Subject })
		if end < 0 {
			end = len(rest)
		}
		rows = append(rows, rowsOf(rest[0].Subject, rest[:end])...)
		rest = rest[end:]
	}
	if len(rows) == 1 {
		rows[0] = []string{"no subject is known to have a way"}
	}
	if err := screen.Table(w.Out, rows...); err != nil {
		return err
	}
	fmt.Fprintln(w.Out)
	for _, name := range answer.MayUse.WorkloadIdentities {
		fmt.Fprintf(w.Out, "it may use WorkloadIdentity %s/%s\n", answer.Namespace, name)
	}
	for _, name := range answer.MayUse.GMSACredentialSpecs {
		fmt.Fprintf(w.Out, "it may use GMSACredentialSpec %s\n", name)
	}
	if len(answer.MayUse.WorkloadIdentities)+len(answer.MayUse.GMSACredentialSpecs) == 0 {
		fmt.Fprintln(w.Out, "it may use no WorkloadIdentity and no GMSACredentialSpec that is known")
	}
	w.Notes(answer.Notes)
	return nil
}

// rowsOf are the rows of a subject: one for each set of bindings, with all of its ways.
func rowsOf(subject rbacv1.Subject, holders []access.Holder) [][]string {
	var rows [][]string
	for _, h := range holders {
		sources := make([]string, 0, len(h.By))
		for _, source := range h.By {
			sources = append(sources, source.String())
		}
		by := strings.Join(sources, ", ")
		at := slices.IndexFunc(rows, func(row []string) bool { return row[2] == by })
		if at >= 0 {
			rows[at][1] += ", " + h.Way
			continue
		}
		rows = append(rows, []string{objects.SubjectText(subject), h.Way, by})
	}
	return rows
}
