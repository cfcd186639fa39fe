package keyring

import (
	"context"

	"github.com/credence-id/credence/internal/keyring/keystore"
)

// nudged is a store that reports changes that this process knows of, and those that the store itself reports.
type nudged struct {
	keystore.Store
	now <-chan struct{}
}

// Watch calls changed for every nudge, until ctx is done or the watch of the store ends.
func (n nudged) Watch(ctx context.Context, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	if store, ok := n.Store.(keystore.Watcher); ok {
		go func() { ended <- store.Watch(ctx, changed) }()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-n.now:
			changed()
		}
	}
}
