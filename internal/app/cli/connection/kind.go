package connection

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// KindAndName reads KIND NAME, or KIND/NAME. The kind is any word; wanted is named where neither is given.
func KindAndName(cmd *cobra.Command, args []string, wanted string) (kind, name string, err error) {
	if len(args) == 1 {
		if kind, name, both := strings.Cut(args[0], "/"); both {
			args = []string{kind, name}
		}
	}
	if len(args) != 2 || args[0] == "" {
		return "", "", command.Usage(cmd, fmt.Sprintf("expected %s, got %s", wanted, wording.Plural(len(args), "argument", "arguments")))
	}
	if err := cluster.CheckName(args[1]); err != nil {
		return "", "", command.Usage(cmd, err.Error())
	}
	return args[0], args[1], nil
}
