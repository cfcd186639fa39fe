package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keystore"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// custody is who holds the keys: a ring of the server's own, or an external signer.
type custody interface {
	// sign makes an issuer sign with the keys.
	sign(config *issuer.Config)
	// published are the keys that relying parties are shown.
	published() []identity.PublicKey
	// readAt is when the keys were read last.
	readAt() time.Time
	// run keeps up with the keys until ctx is done, and calls changed whenever they may have changed.
	run(ctx context.Context, changed func())
	// operator carries out what is asked of the keys; one without a Store if that is not for this server to do.
	operator() keyring.Operator
}

// takeCustody opens the key store, or finds the external signer, and reads the keys for the first time.
func takeCustody(ctx context.Context, o *Options, c checked, client kubernetes.Interface, log *slog.Logger) (custody, error) {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	if o.SignerSocket != "" {
		return findSigner(ctx, o, c, client, log)
	}
	store, err := openStore(o, c, client)
	if err != nil {
		return nil, err
	}
	ring := keyring.NewFollower(keyring.Following{
		Store: store, Interval: o.KeysInterval, Clock: clock.RealClock{}, Random: rand.Float64, Log: log,
	})
	if err := ring.Load(ctx, keys.NewPrivate); err != nil {
		return nil, err
	}
	return ownRing{ring}, nil
}

func openStore(o *Options, c checked, client kubernetes.Interface) (keystore.Store, error) {
	if o.KeysSecret != "" {
		return keystore.NewSecret(client.CoreV1(), c.keysSecret.Namespace, c.keysSecret.Name), nil
	}
	store, err := keystore.OpenDirectory(o.KeysDir)
	if err != nil {
		return nil, fmt.Errorf("open key store: %w", err)
	}
	return store, nil
}

// ownRing is a ring that this server reads from its store.
type ownRing struct{ follower *keyring.Follower }

func (r ownRing) sign(config *issuer.Config) { config.Ring = r.follower.Signing }

// published are the keys of the last good ring, whatever the store says by now.
func (r ownRing) published() []identity.PublicKey {
	newest, _ := r.follower.Newest()
	return newest.Ring.Published()
}

func (r ownRing) readAt() time.Time {
	newest, _ := r.follower.Newest()
	return newest.ReadAt
}

func (r ownRing) run(ctx context.Context, changed func()) {
	go func() { _ = r.follower.Run(ctx) }() // the interval was checked with the options
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.follower.Changed():
			changed()
		}
	}
}

func (r ownRing) operator() keyring.Operator {
	return keyring.Operator{Store: r.follower.Store, Clock: clock.RealClock{}, Generate: keys.NewPrivate, Done: r.follower.Nudge}
}
