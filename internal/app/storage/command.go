package storage

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/apiserver/storage/transfer"
	"github.com/credence-id/credence/internal/app/serving"
)

// NewCommand returns the command `storage`.
func NewCommand() *cobra.Command {
	command := &cobra.Command{Use: "storage", Short: "Copy what the API server stores"}
	command.AddCommand(newCopy())
	return command
}

func newCopy() *cobra.Command {
	o := options{}
	command := &cobra.Command{
		Use:   "copy --from STORAGE --to STORAGE",
		Short: "Copy all stored objects to another, empty storage",
		Long: `Copy all objects that the API server of Credence stores to another storage, byte for byte: uids and subjects stay.
Stop the API server first. A storage is one of

  cluster          records in the API of a cluster (--kubeconfig, or the cluster of this pod)
  embedded:FOLDER  an embedded etcd, by its --etcd-data-dir
  etcd:URL,URL     an etcd, by its --etcd-servers

The target must be empty. Both are read again at the end, and compared. If the copy fails, what it wrote is removed;
the source is never written to.`,
		Example: `  credence-server storage copy --from embedded:/var/lib/credence/etcd --to cluster --kubeconfig apiserver.kubeconfig`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			from, to, err := o.check()
			if err != nil {
				return serving.Usage(err)
			}
			ctx := command.Context()
			opened, err := o.open(ctx, from, to)
			if err != nil {
				return err
			}
			defer opened.close()
			n, err := transfer.Copy(ctx, opened.from, opened.to)
			if err != nil {
				return fmt.Errorf("copy %s to %s: %w", o.from, o.to, err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%d objects copied from %s to %s, and compared\n", n, o.from, o.to)
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.from, "from", "", "`STORAGE` to copy: cluster, embedded:FOLDER or etcd:URL,URL (required)")
	flags.StringVar(&o.to, "to", "", "`STORAGE` to copy to, which must be empty (required)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster, as the user of the API server; default: the cluster that the pod runs in. With two etcds: checks whether this cluster still has an API server of Credence")
	flags.StringVar(&o.serverPods, "server-pods", "", "`NAMESPACE/SELECTOR` of the pods of the API server: waits until the cluster has none, those that are ending included")
	flags.StringVar(&o.prefix, "etcd-prefix", defaultPrefix, "where the objects lie in etcd")
	flags.StringVar(&o.tls.TrustedCAFile, "etcd-cafile", "", "certificate authority of the etcd")
	flags.StringVar(&o.tls.CertFile, "etcd-certfile", "", "client certificate for the etcd")
	flags.StringVar(&o.tls.KeyFile, "etcd-keyfile", "", "key of the client certificate for the etcd")
	return command
}
