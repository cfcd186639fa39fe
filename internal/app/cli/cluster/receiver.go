package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/atomicfile"
	api "github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/membership"
)

// receiver takes the credentials of a cluster, by the names of files.
type receiver interface {
	put(ctx context.Context, files map[string][]byte) error
}

// receiver refuses one that can't be written to, before anything is made in the identity cluster.
func (j *join) receiver(cmd *cobra.Command) (receiver, error) {
	if j.workload == "" {
		folder := folder{j.folder, j.Out}
		if j.dryRun != "none" {
			return folder, nil
		}
		return folder, folder.try()
	}
	opened, err := j.connection.OpenFile(j.workload, j.ErrOut)
	if err != nil {
		return nil, err
	}
	writer := objects.Writer{API: opened, DryRun: j.dryRun, Program: cmd.Root().DisplayName(), Hint: "an admin of the workload cluster may"}
	stop := j.WaitingFor("the API server " + opened.Host)
	defer stop()
	secret := workloadSecret{writer, j.Out}
	return secret, secret.try(cmd.Context())
}

type folder struct {
	path string
	out  io.Writer
}

// try makes the folder, and reports whether files can be written to it.
func (f folder) try() error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	file, err := os.CreateTemp(f.path, ".credence-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func (f folder) put(_ context.Context, files map[string][]byte) error {
	for name, content := range files {
		if err := atomicfile.Replace(filepath.Join(f.path, name), content, 0o600); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(f.out, "agent.kubeconfig and webhook.kubeconfig are in %s\n", f.path)
	return err
}

// workloadSecret is the Secret of the workload cluster.
type workloadSecret struct {
	writer objects.Writer
	out    io.Writer
}

// try has the API server of the workload cluster try the writes out. In a namespace that is not there it can't.
func (w workloadSecret) try(ctx context.Context) error {
	if w.writer.DryRun == "none" {
		w.writer.DryRun = "server"
	}
	namespace := []objects.Object{namespaceOf(rights.SystemNamespace)}
	if err := w.writer.Apply(ctx, namespace); err != nil || namespace[0].Done() == "created" {
		return err
	}
	return w.writer.Apply(ctx, []objects.Object{secretWith(nil)})
}

func (w workloadSecret) put(ctx context.Context, files map[string][]byte) error {
	both := []objects.Object{namespaceOf(rights.SystemNamespace), secretWith(files)}
	for i := range both {
		if err := w.writer.Apply(ctx, both[i:i+1]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w.out, "%sagent.kubeconfig and webhook.kubeconfig are in Secret %s of namespace %s at %s\n", w.writer.Lines(both), membership.SecretName, rights.SystemNamespace, w.writer.API.Host)
	return err
}

func workloadFlag(cmd *cobra.Command, file *string, usage string) {
	cmd.Flags().StringVar(file, "workload-kubeconfig", "", usage)
}

// secretWith has these files. Other keys of a Secret that is there stay.
func secretWith(files map[string][]byte) objects.Object {
	stored := &corev1.Secret{}
	return objects.Object{
		At: api.Place{Namespace: rights.SystemNamespace, Resource: "secrets", Name: membership.SecretName}, Kind: "secret",
		Content: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: rights.SystemNamespace, Name: membership.SecretName},
			Type:       corev1.SecretTypeOpaque,
			Data:       files,
		},
		Stored: stored,
		Fit: func() (bool, error) {
			if stored.Data == nil {
				stored.Data = map[string][]byte{}
			}
			maps.Copy(stored.Data, files)
			return true, nil
		},
	}
}
