package renew

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// renew is "renew".
type renew struct {
	*screen.Terminal
	connection *connection.Flags

	all                                  bool
	identity, output, identityKubeconfig string
	timeout, over                        time.Duration
}

// New is "renew".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	r := &renew{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "renew (KIND NAME | KIND/NAME | --all --identity NAME)",
		Short: "Have new tokens issued now, and report which Secrets have them",
		Long: `Have new tokens issued now: by the annotation gardener.cloud/operation of a Secret that
carries one, of a service account, for all tokens of its pods, or of an object of a
ContextKind, such as a Shoot, for all Secrets that are delivered for it. With --all,
of each Secret that carries tokens of an identity, one after the other.

The agent of the cluster issues them. The command waits until the token of each Secret
is another one. The verdict is renewed, or requested where that is not seen. The Secrets
of an object that is on other clusters than that of the kubeconfig are not seen.
Tokens that were issued before stay valid until they expire.

You need the right to patch the object, and to see the result the right to get or list
Secrets. An object of a ContextKind is looked up in the cluster of --identity-kubeconfig,
if that is given.

Exit codes: 0 renewed, or requested and nothing of it can be seen; 1 refused; 2 wrong usage;
3 a Secret has no new token within --timeout, or a server could not be reached.`,
		Example: `  credence renew secret/etcd-backup -n my-team
  credence renew serviceaccount/web -n my-team
  credence renew shoot/foo -n garden-local
  credence renew --all --identity banana-testing -n garden-local --over 30m`,
		Args:        r.check,
		RunE:        func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVar(&r.all, "all", false, "Renew the tokens of an identity in all Secrets that you may list")
	cmd.Flags().StringVar(&r.identity, "identity", "", "With --all: the name of the WorkloadIdentity, in the namespace of -n")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 2*time.Minute, "How long to wait for the new tokens after the last was requested; 0 does not wait")
	cmd.Flags().DurationVar(&r.over, "over", 0, "With --all: spread the requests over this time (default: a second each, at most 10m)")
	cmd.Flags().StringVar(&r.identityKubeconfig, "identity-kubeconfig", "", connection.IdentityKubeconfigHelp)
	command.Output(cmd, &r.output, "What to print: text, json or yaml", "text", "json", "yaml")
	command.CompleteFlag(cmd, "identity", kube.CompleteArgument((*cluster.API).IdentityNames))
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		carriers := map[string]string{"secret": v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor, "serviceaccount": ""}
		if len(args) == 0 {
			return slices.Sorted(maps.Keys(carriers)), cobra.ShellCompDirectiveNoFileComp
		}
		labels, known := carriers[args[0]]
		if !known || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kube.CompleteNames(cmd.Context(), func(api *cluster.API, ctx context.Context, namespace string) ([]string, error) {
			return api.Names(ctx, cluster.Listing{Namespace: namespace, Resource: args[0] + "s", Labels: labels})
		}, "")
	}
	return cmd
}

func (r *renew) check(cmd *cobra.Command, args []string) error {
	switch {
	case r.all != (r.identity != ""):
		return command.Usage(cmd, "--all and --identity NAME go together")
	case r.all && len(args) > 0:
		return command.Usage(cmd, "--all names the Secrets: give no other arguments")
	case !r.all && cmd.Flags().Changed("over"):
		return command.Usage(cmd, "--over has no effect without --all")
	case r.timeout < 0 || r.over < 0:
		return command.Usage(cmd, "--timeout and --over are not negative")
	case r.all:
		if err := cluster.CheckName(r.identity); err != nil {
			return command.Usage(cmd, "--identity: "+err.Error())
		}
		return nil
	}
	_, _, err := connection.KindAndName(cmd, args, wanted)
	return err
}

const wanted = "KIND NAME, KIND/NAME or --all --identity NAME"

func (r *renew) run(cmd *cobra.Command, args []string) error {
	home, err := r.connection.Home(cmd)
	if err != nil {
		return err
	}
	both, err := r.connection.OpenBoth(r.ErrOut, r.identityKubeconfig)
	if err != nil {
		return err
	}
	request := connection.Request{Namespace: home, Program: cmd.Root().DisplayName()}
	result := &Result{}
	if r.all {
		err = r.renewAll(cmd.Context(), both, home, result)
	} else {
		err = r.renewOne(cmd, both, home, args, result)
	}
	if failed, ok := errors.AsType[*command.Failure](err); ok {
		return failed
	} else if err != nil {
		return request.ObjectFailure("request new tokens", err)
	}
	r.reasons(cmd.Context(), both.Workload, result)
	return r.report(result)
}

func (r *renew) renewOne(cmd *cobra.Command, both cluster.Both, home string, args []string, result *Result) error {
	word, name, err := connection.KindAndName(cmd, args, wanted)
	if err != nil {
		return err
	}
	kind, api, err := find(both, word)
	if errors.Is(err, cluster.ErrNoKind) {
		return command.Usage(cmd, fmt.Sprintf("the API server has no kind %q: kubectl api-resources shows those that there are", word))
	} else if err != nil {
		return err
	}
	result.Object = fmt.Sprintf("%s %s", kind.Kind, kind.Place(home, name).Namespace+"/"+name)
	if !kind.Namespaced {
		result.Object = kind.Kind + " " + name
	}
	switch {
	case kind.Group == "" && kind.Resource == "secrets":
		return r.renewSecret(cmd.Context(), api, home, name, result)
	case kind.Group == "" && kind.Resource == "serviceaccounts":
		return r.renewAccount(cmd.Context(), api, home, name, result)
	case kind.Group == v1alpha1.GroupName:
		return &command.Failure{
			Line: fmt.Sprintf("error: %s have no tokens of their own: many may use one identity, and each of them has its own token", kind.Title()),
			Hint: "renew what uses it, such as secret/NAME, serviceaccount/NAME or the object of a ContextKind; all Secrets of an identity: --all --identity NAME", Code: command.ExitUsage,
		}
	}
	return r.renewObject(cmd.Context(), both, kind, kind.Place(home, name), result)
}

// find looks a kind up where its objects are: Secrets and service accounts in the workload cluster, others in the identity cluster.
func find(both cluster.Both, word string) (cluster.Kind, *cluster.API, error) {
	kind, err := both.Workload.Kind(word)
	if both.Identity == both.Workload || err == nil && kind.Group == "" {
		return kind, both.Workload, err
	}
	kind, err = both.Identity.Kind(word)
	return kind, both.Identity, err
}

// annotate is the patch of the annotation that requests new tokens; nil takes it off.
func annotate(value any) any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationOperation: value}}}
}

// manager is the name by which an object has a record of when the command wrote its annotation.
const manager = "credence-renew"

func (r *renew) request(ctx context.Context, api *cluster.API, at cluster.Place) error {
	return api.Patch(ctx, at, annotate(v1alpha1.OperationRenewToken), nil, cluster.FieldManager(manager))
}
