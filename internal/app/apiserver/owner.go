package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	keyringregistry "github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"k8s.io/apimachinery/pkg/util/wait"
)

// own makes sure that the storage is this installation's, before anything is served from it or written into it. A storage that is empty is
// taken when the KeyRing is made.
func (a assembly) own(ctx context.Context, server *apiserver.Server) error {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last = server.KeyRings.Own(ctx, identityv1alpha1.WorkloadIdentities, a.former)
		if foreign, ok := errors.AsType[*keyringregistry.Foreign](last); ok {
			return false, a.refuse(foreign)
		}
		return last == nil, nil
	})
	if err != nil && ctx.Err() != nil && last != nil {
		return fmt.Errorf("find out whose storage this is: %w", last)
	}
	return err
}

// checkOwner is how often a server makes sure that the storage is still its own.
const checkOwner = 5 * time.Second

// keep ends the server once another installation has taken the storage over.
func (a assembly) keep(ctx context.Context, server *apiserver.Server) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if foreign, ok := errors.AsType[*keyringregistry.Foreign](server.KeyRings.Own(ctx, identityv1alpha1.WorkloadIdentities, "")); ok {
			a.fail(a.refuse(foreign))
		}
	}, checkOwner)
}

// refuse words that the storage is that of another installation.
func (a assembly) refuse(foreign *keyringregistry.Foreign) error {
	own := "an etcd or an --etcd-prefix of its own"
	if a.stored != nil {
		own = "a cluster, or an etcd, of its own"
	}
	return fmt.Errorf("%w; --issuer is %s: give this one %s, or if the other is gone for good, take its storage over with --take-over-from=%s", foreign, a.issuer, own, foreign.Issuer)
}
