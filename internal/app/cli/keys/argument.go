package keys

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// takesKeyIDs is the annotation of commands with IDs of keys as arguments.
const takesKeyIDs = "credence.dev/takes-key-ids"

// IDsLast moves the IDs of keys that begin with - behind --, so that they are not taken for flags: - is a letter of
// base64url. The order of all other arguments stays.
func IDsLast(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[takesKeyIDs] == "" {
		return args
	}
	var before, after, ids []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			after = args[i+1:]
			i = len(args)
		case !strings.HasPrefix(arg, "-"):
			before = append(before, arg)
		case keys.WellFormed(identity.KeyID(arg)):
			ids = append(ids, arg)
		default:
			before = append(before, arg)
			if takesNext(cmd, arg) && i+1 < len(args) {
				i++
				before = append(before, args[i])
			}
		}
	}
	if len(ids) == 0 {
		return args
	}
	return slices.Concat(before, []string{"--"}, after, ids)
}

// takesNext reports whether the value of a flag is the argument after it.
func takesNext(cmd *cobra.Command, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		return wantsValue(cmd.Flag(name))
	}
	for i := 1; i < len(arg); i++ {
		flag := cmd.Flags().ShorthandLookup(arg[i : i+1])
		if flag == nil {
			flag = cmd.InheritedFlags().ShorthandLookup(arg[i : i+1])
		}
		if wantsValue(flag) {
			return i == len(arg)-1
		}
	}
	return false
}

func wantsValue(flag *pflag.Flag) bool { return flag != nil && flag.NoOptDefVal == "" }
