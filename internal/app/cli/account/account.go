package account

import (
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// New is "account".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "account COMMAND",
		Short: "Make a service account with all that belongs to it, and list those that you may use",
		Long: `Make a service account with all that belongs to it: its workload identity, the right to
use that, its profile, and the users who may run pods as it. A cluster admin sets a
namespace up for this once: credence enable.`,
	}
	cmd.AddCommand(newCreate(terminal, kube), newList(terminal, kube))
	return command.Group(cmd)
}

// subjects reads users and groups of flags.
func subjects(cmd *cobra.Command, users, groups []string) ([]rbacv1.Subject, error) {
	var all []rbacv1.Subject
	for _, list := range []struct {
		names []string
		group bool
	}{{users, false}, {groups, true}} {
		for _, name := range list.names {
			subject, err := access.Subject(name, list.group)
			if err != nil {
				return nil, command.Usage(cmd, err.Error())
			}
			all = append(all, subject)
		}
	}
	return all, nil
}
