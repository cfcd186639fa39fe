package access

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
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
	cmd.Flags().StringVar(&g.dryRun, "dry-run", "none", "none, client (read what is there, and write nothing) or server (have the API server decide, and keep nothing)")
	command.CompleteFlag(cmd, "dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	command.Output(cmd, &g.output, "What to print: text (what was done), json or yaml (the objects)", "text", "json", "yaml")
	return cmd
}

// change is an object to write, and what becomes of it.
type change struct {
	object     any
	at         cluster.Place
	kind, name string
	done       string // created, configured or unchanged
}

func (g *grant) run(cmd *cobra.Command, user string, names []string) error {
	if err := command.OneOf(cmd, "dry-run", g.dryRun, "none", "client", "server"); err != nil {
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
	stop := g.WaitingFor("the API server " + g.api.Host)
	changes, err := g.apply(cmd.Context(), cmd.Root().DisplayName(), accounts)
	stop()
	if err != nil {
		return err
	}
	return g.print(changes, user, accounts)
}

// apply writes what is missing. All is read before the first write, so that an object in the way leaves nothing half done.
func (g *grant) apply(ctx context.Context, program string, accounts []access.Account) ([]change, error) {
	var changes []change
	for _, account := range accounts {
		planned, err := g.plan(ctx, account)
		if err != nil {
			return nil, g.failure(program, account, "read the rights to use "+account.String(), err)
		}
		changes = append(changes, planned...)
		g.noteMissing(ctx, account)
	}
	for i, c := range changes {
		if c.done == "unchanged" || g.dryRun == "client" {
			continue
		}
		if err := g.write(ctx, &changes[i]); err != nil {
			return nil, g.failure(program, accounts[0], fmt.Sprintf("write %s %s", c.kind, c.name), err)
		}
	}
	return changes, nil
}

// plan reads the Role and the RoleBinding of an account, and returns them as they must be.
func (g *grant) plan(ctx context.Context, account access.Account) ([]change, error) {
	var changes []change
	if role := account.Role(); role != nil {
		at := cluster.Place{API: rbac, Namespace: account.Namespace, Resource: "roles", Name: role.Name}
		planned := change{role, at, "role", role.Name, "created"}
		var stored rbacv1.Role
		if there, err := g.read(ctx, &stored, at); err != nil {
			return nil, err
		} else if there {
			if err := account.CheckRole(&stored); err != nil {
				return nil, inTheWay(err)
			}
			planned.object, planned.done = &stored, "unchanged"
		}
		changes = append(changes, planned)
	}
	binding := account.Binding(g.subject)
	at := cluster.Place{API: rbac, Namespace: account.Namespace, Resource: "rolebindings", Name: binding.Name}
	planned := change{binding, at, "rolebinding", binding.Name, "created"}
	var stored rbacv1.RoleBinding
	if there, err := g.read(ctx, &stored, at); err != nil {
		return nil, err
	} else if there {
		changed, err := account.AddTo(&stored, g.subject)
		if err != nil {
			return nil, inTheWay(err)
		}
		if planned.object, planned.done = &stored, "unchanged"; changed {
			planned.done = "configured"
		}
	}
	return append(changes, planned), nil
}

func (g *grant) read(ctx context.Context, into any, at cluster.Place) (there bool, err error) {
	err = g.api.Get(ctx, into, at)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func inTheWay(err error) error {
	return &command.Failure{
		Line: "error: " + err.Error(), Err: err, Code: command.ExitRefused,
		Hint: "nothing was written: a user who may write it must rename it, or delete it",
	}
}

// write creates or updates an object. Between two writers of one object the API server refuses the second one, which reads again.
func (g *grant) write(ctx context.Context, c *change) error {
	var options []cluster.Option
	if g.dryRun == "server" {
		options = []cluster.Option{cluster.DryRun}
	}
	if c.done == "configured" {
		return g.api.Update(ctx, c.at, c.object, c.object, options...)
	}
	to := c.at
	to.Name = ""
	err := g.api.Create(ctx, to, c.object, c.object, options...)
	if c.kind == "rolebinding" && g.dryRun == "server" && apierrors.IsNotFound(err) {
		// Its Role was not kept either. That it may be given has been decided with the Role, which has the same rules.
		return g.mayCreate(ctx, c)
	}
	return err
}

func (g *grant) mayCreate(ctx context.Context, c *change) error {
	group, resource := rbacv1.GroupName, c.at.Resource
	review, err := g.api.ReviewSelf(ctx, authorizationv1.ResourceAttributes{Namespace: c.at.Namespace, Verb: "create", Group: group, Resource: resource})
	if err == nil && !review.Allowed {
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("%s.%s is forbidden: you cannot create resource %q in API group %q in the namespace %q", resource, group, resource, group, c.at.Namespace),
		}}
	}
	return err
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

// failure words an error of the API. After a refusal, a user with more rights must run the command.
func (g *grant) failure(program string, account access.Account, doing string, err error) error {
	if failed, ok := errors.AsType[*command.Failure](err); ok {
		return failed
	}
	failed, ok := errors.AsType[*command.Failure](connection.Request{Namespace: account.Namespace, Program: program}.ObjectFailure(doing, err))
	if !ok {
		return err
	}
	switch {
	case apierrors.IsForbidden(err):
		failed.Hint = fmt.Sprintf("an admin of namespace %s (ClusterRole admin) can give the right, or a cluster admin: users may only give rights that they have", account.Namespace)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		failed.Hint = "another user has written it meanwhile: run the command again"
	}
	return failed
}

func (g *grant) print(changes []change, user string, accounts []access.Account) error {
	if g.output != "text" {
		objects := make([]any, 0, len(changes))
		for _, c := range changes {
			objects = append(objects, c.object)
		}
		return printObjects(g.Out, g.output, objects)
	}
	suffix := map[string]string{"client": " (dry run)", "server": " (server dry run)"}[g.dryRun]
	for _, c := range changes {
		fmt.Fprintf(g.Out, "%s.%s/%s %s%s\n", c.kind, rbacv1.GroupName, c.name, c.done, suffix)
	}
	if suffix != "" {
		return nil
	}
	names := make([]string, 0, len(accounts))
	for _, account := range accounts {
		names = append(names, strings.Replace(account.String(), access.All, "* (all)", 1))
	}
	_, err := fmt.Fprintf(g.Out, "%s may use service account %s\n", subjectText(g.subject), strings.Join(names, ", "))
	return err
}
