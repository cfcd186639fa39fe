package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	api "github.com/credence-id/credence/internal/cluster"
)

// read returns the stored cluster, and what it would be as a member that joined with these namespaces, too.
func read(ctx context.Context, from *api.API, m member) (*v1alpha1.WorkloadCluster, member, error) {
	var stored v1alpha1.WorkloadCluster
	if err := from.Get(ctx, &stored, m.place()); err != nil {
		return &stored, m, err
	}
	namespaces := slices.Clone(stored.Spec.Identities.Namespaces)
	merge(&namespaces, m.namespaces)
	m.namespaces, m.fromContexts = namespaces, m.fromContexts || stored.Spec.Identities.FromContexts
	return &stored, m, nil
}

// failure words an error of the API on an object that has no namespace.
func failure(cmd *cobra.Command, doing string, err error) error {
	program := cmd.Root().DisplayName()
	failed, ok := errors.AsType[*command.Failure](connection.Request{Program: program}.ObjectFailure(doing, err))
	if !ok {
		return err
	}
	switch {
	case apierrors.IsNotFound(err) && failed.Hint == "":
		failed.Hint = "see which clusters there are: " + program + " cluster list"
	case apierrors.IsConflict(err):
		failed.Hint = "another user has written it meanwhile: run the command again"
	}
	return failed
}
