package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	api "github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// leave is "cluster leave".
type leave struct {
	*screen.Terminal
	connection *connection.Flags
	namespaces []string
}

func newLeave(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	l := &leave{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "leave NAME [--identities NAMESPACE...]",
		Short: "Take all rights from another cluster, or those to namespaces",
		Long: `Take all rights from a cluster that has joined: its service accounts are deleted first,
so that it gets no more tokens at once, then everything else that joining made, and the
RoleBindings of all namespaces that have no other subjects. Tokens that it was issued
before stay valid until they expire: by when is printed.

With --identities it stays a member, without these namespaces: its WorkloadCluster does
not list them any more, and its RoleBindings there are deleted.

Objects that are gone already are passed over, the WorkloadCluster, too, so that the
command can be run again.`,
		Example: `  credence cluster leave east
  credence cluster leave east --identities fruit`,
		Args:              command.ExactlyOne("the name of a cluster"),
		RunE:              func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0]) },
		ValidArgsFunction: completeClusters(kube),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	identitiesFlag(cmd, kube, &l.namespaces, "A namespace whose identities are taken from the cluster, which stays; may be repeated, or separated by commas")
	return cmd
}

func (l *leave) run(cmd *cobra.Command, name string) error {
	taken, err := memberOf(cmd, name, l.namespaces)
	if err != nil {
		return err
	}
	opened, err := l.connection.Open(l.ErrOut)
	if err != nil {
		return err
	}
	stop := l.WaitingFor("the API server " + opened.Host)
	defer stop()
	stored, m, err := read(cmd.Context(), opened, member{name: name})
	if err != nil && !apierrors.IsNotFound(err) {
		return failure(cmd, "read WorkloadCluster "+name, err)
	}
	if len(taken.namespaces) > 0 {
		if err != nil {
			return failure(cmd, "read WorkloadCluster "+name, err)
		}
		return l.namespacesOf(cmd, opened, stored, taken)
	}
	others := slices.DeleteFunc(slices.Clone(stored.Spec.Users), func(user string) bool { return user == userOf(m.agent()) || user == userOf(m.webhook()) })
	if len(others) > 0 {
		return &command.Failure{
			Line: fmt.Sprintf("error: WorkloadCluster %s has users that joining did not make: %s", name, wording.OneLine(strings.Join(others, ", "))), Code: command.ExitRefused,
			Hint: "a cluster admin takes their rights to identities away, and takes them off spec.users; nothing was deleted",
		}
	}
	rights, err := m.bound(cmd.Context(), opened)
	if err != nil {
		return failure(cmd, "list RoleBindings", err)
	}
	deleted, err := remove(cmd.Context(), opened, l.Out, cmd.Root().DisplayName(), slices.Concat(m.accounts(), rights.only(), m.rest()))
	if err != nil {
		return err
	}
	for _, b := range rights.bindings {
		if m.mixed(b) && !m.made(b) {
			fmt.Fprintf(l.ErrOut, "note: RoleBinding %s of namespace %s has other subjects, too: take the accounts of the cluster off it, or a cluster of this name gets its rights\n", b.Name, b.Namespace)
		}
	}
	if rights.note != "" {
		printNotes(l.ErrOut, rights.note)
	}
	if deleted == 0 {
		_, err := fmt.Fprintf(l.Out, "nothing of cluster %s was left\n", name)
		return err
	}
	fmt.Fprintln(l.Out, l.until(cmd.Context(), opened))
	return nil
}

// namespacesOf takes namespaces off a cluster. First it gets no more tokens, then it can't read any more.
func (l *leave) namespacesOf(cmd *cobra.Command, opened *api.API, stored *v1alpha1.WorkloadCluster, taken member) error {
	off := func(namespace string) bool { return slices.Contains(taken.namespaces, namespace) }
	before := slices.Clone(stored.Spec.Identities.Namespaces)
	stored.Spec.Identities.Namespaces = slices.DeleteFunc(stored.Spec.Identities.Namespaces, off)
	if len(stored.Spec.Identities.Namespaces) < len(before) {
		if err := opened.Update(cmd.Context(), taken.place(), stored, nil); err != nil {
			return failure(cmd, "write WorkloadCluster "+taken.name, err)
		}
		fmt.Fprintf(l.Out, "%s/%s configured\n", taken.cluster().Kind, taken.name)
	}
	var bindings []objects.Object
	for _, namespace := range taken.namespaces {
		if namespace != v1alpha1.WorkloadClusters { // the agent needs its RoleBinding there
			bindings = append(bindings, taken.bindings(namespace)...)
		}
	}
	_, err := remove(cmd.Context(), opened, l.Out, cmd.Root().DisplayName(), bindings)
	for _, namespace := range taken.namespaces {
		if err == nil && !slices.Contains(before, namespace) {
			fmt.Fprintf(l.ErrOut, "note: cluster %s did not have the identities of namespace %s; it has those of: %s\n", taken.name, namespace, cmp.Or(strings.Join(stored.Spec.Identities.Namespaces, ", "), "none"))
		}
	}
	if err == nil && stored.Spec.Identities.FromContexts {
		fmt.Fprintln(l.ErrOut, "note: it still has the identities that objects on it use, by spec.identities.fromContexts")
	}
	return err
}

// accounts come first: with them all rights are gone.
func (m member) accounts() []objects.Object {
	return []objects.Object{m.account(m.agent()), m.account(m.webhook())}
}

// rest is what else joining made. The cluster is the last: it has the namespaces, for a command that is run again.
func (m member) rest() []objects.Object {
	var rest []objects.Object
	for _, o := range m.objects() {
		if o.At.Resource != "serviceaccounts" {
			rest = append(rest, o)
		}
	}
	slices.Reverse(rest)
	return rest
}

// until is by when the tokens of a cluster have expired that leaves now.
func (l *leave) until(ctx context.Context, opened *api.API) string {
	var ring v1alpha1.KeyRing
	err := opened.Get(ctx, &ring, api.Place{API: identityAPI, Resource: "keyrings", Name: v1alpha1.WorkloadIdentities})
	if err != nil || ring.Status.Settings == nil {
		return "no more tokens are issued to it; those that it has are valid until they expire, within the longest lifetime of the issuer"
	}
	longest := ring.Status.Settings.MaxTokenLifetime.Duration
	return "no more tokens are issued to it; those that it has have expired by " + l.Now().Add(longest).UTC().Format(time.RFC3339)
}

func completeClusters(kube *connection.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kube.CompleteNames(cmd.Context(), (*api.API).WorkloadClusterNames, "")
	}
}
