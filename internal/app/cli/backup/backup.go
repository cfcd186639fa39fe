// Package backup has the command backup: files with the identities of an installation, and with its ring of keys if that is requested.
// In go a cluster and a file, out comes the other. It prints no private key.
package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// New is "backup".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup COMMAND",
		Short: "Back up identities and keys, and restore them",
		Long: `Back up the identities of an installation, and restore them with their uids: the
subject of a token holds the uid, and clouds trust the subject.

A backup belongs to its issuer, and is restored under no other.`,
	}
	cmd.AddCommand(newCreate(terminal, kube), newInspect(terminal), newRestore(terminal, kube))
	return command.Group(cmd)
}

// state is what a cluster has.
type state struct {
	issuer     string // empty: not known yet
	identities []v1alpha1.WorkloadIdentity
	ring       identityv1alpha1.KeyRing
}

var ringPlace = cluster.Place{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "keyrings", Name: identityv1alpha1.WorkloadIdentities}

// read reads the identities of all namespaces, and the KeyRing.
func read(ctx context.Context, terminal *screen.Terminal, api *cluster.API, program string) (state, error) {
	defer terminal.WaitingFor("the API server " + api.Host)()
	request := connection.Request{Program: program}
	var s state
	var ring cluster.Exact[identityv1alpha1.KeyRing]
	if err := api.Get(ctx, &ring, ringPlace); err != nil {
		return state{}, request.ObjectFailure("read the KeyRing", err)
	}
	if err := cluster.Each(ctx, api, cluster.Identities(""), func(wi *cluster.Exact[v1alpha1.WorkloadIdentity]) { s.identities = append(s.identities, wi.Object) }); err != nil {
		return state{}, request.Failure("list the identities of all namespaces", err)
	}
	s.ring, s.issuer = ring.Object, ring.Object.Status.Issuer
	for i := range s.identities {
		if s.issuer == "" {
			s.issuer = s.identities[i].Status.Issuer
		}
	}
	return s, nil
}

// failed words an error of a file.
func failed(doing string, err error) error {
	if _, worded := errors.AsType[*command.Failure](err); worded {
		return err
	}
	return &command.Failure{Line: fmt.Sprintf("error: %s: %v", doing, err), Code: command.ExitUsage, Err: err}
}
