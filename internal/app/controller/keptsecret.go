package controller

import (
	"context"
	"errors"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// keptSecret makes the Secret of the ring again whenever it is gone. The programs that have the ring in memory, this one among them, write
// it back then.
type keptSecret struct{ *keystore.Secret }

// Load implements keystore.Store. That the Secret could not be made or marked is an error only of a Secret without a ring.
func (k keptSecret) Load(ctx context.Context) (keys.Ring, string, error) {
	failed := k.Keep(ctx)
	ring, version, err := k.Secret.Load(ctx)
	if err != nil {
		err = errors.Join(err, failed)
	}
	return ring, version, err
}
