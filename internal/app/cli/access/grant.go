package access

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// grant is "access grant": it writes the Roles and RoleBindings that let a user use accounts.
type grant struct {
	*screen.Terminal
	connection *connection.Flags

	group          bool
	dryRun, output string

	api     *cluster.API
	subject rbacv1.Subject
}

func newGrant(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	g := &grant{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "grant USER ACCOUNT...",
		Short: "Give a user the right to use service accounts",
		Long: `Give a user the right to run pods as service accounts of a namespace. For each account
there is one Role, with the verb use on this account alone, and one RoleBinding with
all users who may: credence:serviceaccounts:user:ACCOUNT. Users who are there stay, and
giving a right twice changes nothing. For '*', all accounts of the namespace, it is a
RoleBinding to ClusterRole credence:serviceaccounts:user.

USER is the name by which the API server knows the user (kubectl auth whoami), with
--group that of a group, and for a service account system:serviceaccount:NAMESPACE:NAME.

The API server decides whether you may: you must be able to write Roles and
RoleBindings of the namespace, and may only give a right that you have. An admin of
the namespace (ClusterRole admin) has it. To take a right back, remove the user from
the subjects of the RoleBinding.`,
		Example: `  credence access grant jane@example.com cart checkout -n shop
  credence access grant --group payments-team cart -n shop
  credence access grant system:serviceaccount:argocd:argocd-application-controller '*' -n shop

  # For Git: the objects as they would be
  credence access grant jane@example.com cart -n shop --dry-run=client -o yaml`,
		Args: atLeast(2, "a USER and one or more ACCOUNTs"),
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0], args[1:]) },

		ValidArgsFunction: completeAccounts(kube, 1, math.MaxInt),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVar(&g.group, "group", false, "USER is the name of a group")
	objects.DryRunFlag(cmd, &g.dryRun)
	command.Output(cmd, &g.output, "What to print: text (what was done), json or yaml (the objects)", "text", "json", "yaml")
	return cmd
}

func (g *grant) run(cmd *cobra.Command, user string, names []string) error {
	if err := objects.CheckDryRun(cmd, g.dryRun); err != nil {
		return err
	}
	accounts, err := accountsOf(cmd, g.connection, slices.Compact(slices.Sorted(slices.Values(names))))
	if err != nil {
		return err
	}
	if g.subject, err = access.Subject(user, g.group); err != nil {
		return command.Usage(cmd, err.Error())
	}
	if g.api, err = g.connection.Open(g.ErrOut); err != nil {
		return err
	}
	writer := objects.Writer{API: g.api, DryRun: g.dryRun, Program: cmd.Root().DisplayName(),
		Hint: fmt.Sprintf("an admin of namespace %s (ClusterRole admin) can give the right, or a cluster admin: users may only give rights that they have", accounts[0].Namespace)}
	stop := g.WaitingFor("the API server " + g.api.Host)
	written, err := g.apply(cmd.Context(), writer, accounts)
	stop()
	if err != nil {
		return err
	}
	return g.print(writer, written, accounts)
}

// apply writes what is missing.
func (g *grant) apply(ctx context.Context, writer objects.Writer, accounts []access.Account) ([]objects.Object, error) {
	var all []objects.Object
	for _, account := range accounts {
		all = append(all, objects.Use(account, g.subject)...)
		g.noteMissing(ctx, account)
	}
	return all, writer.Apply(ctx, all)
}

// noteMissing notes that an account does not exist: the right to use it may be given before.
func (g *grant) noteMissing(ctx context.Context, account access.Account) {
	if account.Name == access.All {
		return
	}
	if _, err := g.api.ServiceAccountUID(ctx, account.Namespace, account.Name); apierrors.IsNotFound(err) {
		fmt.Fprintf(g.ErrOut, "note: service account %s does not exist\n", account)
	}
}

func (g *grant) print(writer objects.Writer, written []objects.Object, accounts []access.Account) error {
	if g.output != "text" {
		return objects.Print(g.Out, g.output, objects.Contents(written))
	}
	if _, err := io.WriteString(g.Out, writer.Lines(written)); err != nil || g.dryRun != "none" {
		return err
	}
	names := make([]string, 0, len(accounts))
	for _, account := range accounts {
		names = append(names, strings.Replace(account.String(), access.All, "* (all)", 1))
	}
	_, err := fmt.Fprintf(g.Out, "%s may use service account %s\n", objects.SubjectText(g.subject), strings.Join(names, ", "))
	return err
}
