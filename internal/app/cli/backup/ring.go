package backup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// ringFlags are the flags that name the store of the ring.
type ringFlags struct{ secret, folder string }

func (r *ringFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.secret, "keys-secret", "credence-system/credence-keys", "`NAMESPACE/NAME` of the Secret with the ring, as --keys-secret of the API server")
	cmd.Flags().StringVar(&r.folder, "keys-dir", "", "Folder with the ring in place of the Secret, as --keys-dir of the API server")
	cmd.MarkFlagsMutuallyExclusive("keys-secret", "keys-dir")
	command.CompleteFlag(cmd, "keys-dir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

// given names a flag that was given; empty if none was.
func (r *ringFlags) given(cmd *cobra.Command) string {
	for _, name := range []string{"keys-secret", "keys-dir"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// open returns the store of the ring; api opens the cluster that has the Secret, and is not called for a folder.
func (r *ringFlags) open(api func() (*cluster.API, error)) (keystore.Store, error) {
	if r.folder != "" {
		// A folder that does not exist would be made, and a mistyped name with it.
		if _, err := os.Stat(r.folder); err != nil {
			return nil, err
		}
		return keystore.OpenDirectory(r.folder)
	}
	namespace, name, ok := strings.Cut(r.secret, "/")
	if !ok || cluster.CheckName(namespace) != nil || cluster.CheckName(name) != nil {
		return nil, fmt.Errorf("--keys-secret %q must be NAMESPACE/NAME", r.secret)
	}
	opened, err := api()
	if err != nil {
		return nil, err
	}
	client, err := corev1client.NewForConfigAndClient(&rest.Config{Host: opened.Host}, opened.HTTP)
	if err != nil {
		return nil, err
	}
	return keystore.NewSecret(client, namespace, name), nil
}

// ringFailure words an error of the store.
func ringFailure(doing string, err error) error {
	if _, worded := errors.AsType[*command.Failure](err); worded {
		return err
	}
	failure := &command.Failure{Line: fmt.Sprintf("error: %s: %v", doing, err), Code: command.ExitRefused, Err: err}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		failure.Code = command.ExitUsage
	}
	return failure
}
