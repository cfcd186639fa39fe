package keys

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/settings"
	"github.com/credence-id/credence/internal/wording"
)

// New is "keys".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys COMMAND",
		Short: "List, rotate and revoke the signing keys of an issuer",
		Long: `List, rotate and revoke the keys that tokens are signed with.

Of each algorithm one key signs, and one is a spare: it is published and has never
signed, so that every relying party knows it before it does. Keys rotate without
any command. The rights that these commands need are those of the ClusterRoles
credence:keyrings:viewer and credence:keyrings:operator.`,
	}
	cmd.AddCommand(
		newList(terminal, kube), newRotate(terminal, kube), newRevoke(terminal, kube),
		newHistory(terminal, kube), newAcknowledge(terminal, kube), newInitialize(terminal, kube), newProbe(terminal, kube),
	)
	return command.Group(cmd)
}

// keyRing is the ring of keys that a command works on: behind the API of a cluster, or in a folder. Errors are *failure.
type keyRing interface {
	read(ctx context.Context) (*v1alpha1.KeyRing, error)
	rotate(ctx context.Context, spec v1alpha1.KeyRotationSpec, dryRun bool) (v1alpha1.KeyRotationStatus, error)
	revoke(ctx context.Context, spec v1alpha1.KeyRevocationSpec, dryRun bool) (v1alpha1.KeyRevocationStatus, error)
}

// ringChoice selects the ring of a command.
type ringChoice struct {
	*screen.Terminal
	connection *connection.Flags

	directory string
	settings  keys.Settings
	// settingFlags have an effect on a folder only: behind an API, the key controller has them.
	settingFlags *pflag.FlagSet
}

func newRingChoice(terminal *screen.Terminal, kube *connection.Flags) ringChoice {
	return ringChoice{Terminal: terminal, connection: kube, settingFlags: pflag.NewFlagSet("settings", pflag.ContinueOnError)}
}

func (r *ringChoice) addFlags(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{connection.NeedsCluster: "yes"}
	cmd.Flags().StringVar(&r.directory, "keys-dir", "",
		"Work on the ring in this folder, that of credence-server signer, and on no cluster. The flags by which its keys change must be those of that program")
	settings.AddFlags(r.settingFlags, &r.settings)
	cmd.Flags().AddFlagSet(r.settingFlags)
	command.CompleteFlag(cmd, "keys-dir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

// open returns the ring that the command line names, and the API that it is behind, nil for a folder.
func (r *ringChoice) open(cmd *cobra.Command) (keyRing, *cluster.API, error) {
	if !cmd.Flags().Changed("keys-dir") {
		if flag := changed(r.settingFlags); flag != "" {
			return nil, nil, command.Usage(cmd, fmt.Sprintf("--%s has no effect without --keys-dir: the key controller has the settings of the keys of a cluster", flag))
		}
		api, err := r.connection.Open(r.ErrOut)
		if err != nil {
			return nil, nil, err
		}
		return apiRing{Terminal: r.Terminal, api: api, program: cmd.Root().DisplayName()}, api, nil
	}
	if flag := changed(cmd.Root().PersistentFlags()); flag != "" {
		return nil, nil, command.Usage(cmd, fmt.Sprintf("--%s has no effect: with --keys-dir the command talks to no cluster that it could choose", flag))
	}
	complete, err := r.settings.Complete()
	if err != nil {
		return nil, nil, command.Usage(cmd, "the settings of the keys contradict each other: "+err.Error())
	}
	ring, err := openDirectoryRing(r.directory, complete, r.Now)
	return ring, nil, err
}

// commands returns how a user runs another command on the same ring.
func (r *ringChoice) commands(cmd *cobra.Command) func(name string) string {
	program, where := cmd.Root().DisplayName(), ""
	if cmd.Flags().Changed("keys-dir") {
		where = " --keys-dir " + r.directory
	}
	return func(name string) string { return program + " keys " + name + where }
}

// changed names a flag that was given; empty if none was.
func changed(flags *pflag.FlagSet) string {
	name := ""
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			name = cmp.Or(name, flag.Name)
		}
	})
	return name
}

// completeKeys completes the IDs of keys, with their state and algorithm.
func (r *ringChoice) completeKeys(cmd *cobra.Command, given []string) ([]string, cobra.ShellCompDirective) {
	object, err := r.forCompletion(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, key := range object.Status.Keys {
		if !slices.Contains(given, key.ID) {
			all = append(all, cobra.CompletionWithDesc(wording.OneLine(key.ID), wording.OneLine(key.State+" "+key.Algorithm)))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// forCompletion reads the ring within the time for which a user who pressed the tab key can be kept waiting.
func (r *ringChoice) forCompletion(cmd *cobra.Command) (*v1alpha1.KeyRing, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), r.connection.CompletionTimeout)
	defer cancel()
	quiet, silent := *r, *r.Terminal
	silent.ErrOut = io.Discard
	quiet.Terminal = &silent
	ring, _, err := quiet.open(cmd)
	if err != nil {
		return nil, err
	}
	return ring.read(ctx)
}

// activeKey is the ID of the key of an algorithm that the ring was seen to sign with; empty if none was.
func activeKey(ring *v1alpha1.KeyRing, algorithm string) string {
	for _, key := range ring.Status.Keys {
		if key.Algorithm == algorithm && key.State == string(keys.Active) {
			return key.ID
		}
	}
	return ""
}

// keyOf is the status of a key in the ring.
func keyOf(ring *v1alpha1.KeyRing, id string) (v1alpha1.KeyStatus, bool) {
	i := slices.IndexFunc(ring.Status.Keys, func(k v1alpha1.KeyStatus) bool { return k.ID == id })
	if i < 0 {
		return v1alpha1.KeyStatus{}, false
	}
	return ring.Status.Keys[i], true
}

// algorithmNames are those of which every ring has keys.
func algorithmNames() []string {
	var names []string
	for _, algorithm := range keys.Algorithms() {
		names = append(names, string(algorithm))
	}
	return names
}
