package access

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// New is "access".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access COMMAND",
		Short: "Give users the right to use service accounts, and see who has it",
		Long: `Give users the right to use service accounts: the verb use on serviceaccounts, which the
API server requires of users who write pods and pod templates, in namespaces with the
label identity.credence.dev/account-use. kubectl create role refuses that verb.`,
	}
	cmd.AddCommand(newGrant(terminal, kube), newCan(terminal, kube), newWho(terminal, kube), newSuggest(terminal), newPolicy(terminal))
	return command.Group(cmd)
}

const rbac = "/apis/rbac.authorization.k8s.io/v1"

// accountsOf reads the names of service accounts in the namespace of the command line.
func accountsOf(cmd *cobra.Command, kube *connection.Flags, names []string) ([]access.Account, error) {
	namespace, err := kube.Home(cmd)
	if err != nil {
		return nil, err
	}
	var accounts []access.Account
	for _, name := range names {
		account := access.Account{Namespace: namespace, Name: name}
		if err := account.Check(); err != nil {
			return nil, command.Usage(cmd, err.Error())
		}
		accounts = append(accounts, account)
	}
	return accounts, nil
}

// oneAccount is accountsOf for one account, and not for all.
func oneAccount(cmd *cobra.Command, kube *connection.Flags, name string) (access.Account, error) {
	accounts, err := accountsOf(cmd, kube, []string{name})
	if err != nil {
		return access.Account{}, err
	}
	if name == access.All {
		return access.Account{}, command.Usage(cmd, "name one service account")
	}
	return accounts[0], nil
}

// atLeast accepts n arguments or more, which what describes.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return command.Usage(cmd, fmt.Sprintf("expected %s, got %d arguments", what, len(args)))
		}
		return nil
	}
}

// completeAccounts completes the names of service accounts after the first arguments.
func completeAccounts(kube *connection.Flags, after, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < after || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kube.CompleteNames(cmd.Context(), (*cluster.API).ServiceAccountNames, "")
	}
}
