package controller

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// keptSecret makes the Secret of the ring again whenever it is gone. The programs that have the ring in memory, this one among them, write
// it back then.
type keptSecret struct {
	*keystore.Secret
	log *slog.Logger
	// failed is the last failure, which is logged once.
	failed atomic.Pointer[string]
}

// Load implements keystore.Store.
func (k *keptSecret) Load(ctx context.Context) (keys.Ring, string, error) {
	failure := ""
	if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
		failure = err.Error()
	}
	if before := k.failed.Swap(&failure); failure != "" && (before == nil || *before != failure) {
		k.log.WarnContext(ctx, "the Secret of the ring of keys could not be made or marked", "secret", k.String(), "err", failure)
	}
	return k.Secret.Load(ctx)
}
