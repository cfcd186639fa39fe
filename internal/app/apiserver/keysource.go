package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// keySource holds the keys: it is a ring of the server's own, or an external signer.
type keySource interface {
	// sign makes an issuer sign with the keys.
	sign(config *issuer.Config)
	// atStart are the keys that were found first.
	atStart() []identity.PublicKey
	// published are the keys that relying parties are shown.
	published() []identity.PublicKey
	// revoked are the keys that may never be shown again.
	revoked() []keys.Compromised
	// unready returns why no token can be signed, or nil.
	unready() error
	// readAt is when the keys were read last.
	readAt() time.Time
	// run keeps up with the keys until ctx is done, and calls changed whenever they may have changed.
	run(ctx context.Context, changed func())
	// operator carries out requests about the keys; it has no Store if this server may not change them.
	operator() keyring.Operator
}

// openKeys opens the key store, or finds the external signer, and reads the keys for the first time.
func openKeys(ctx context.Context, o *Options, c checked, client kubernetes.Interface, log *slog.Logger) (keySource, error) {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	if o.SignerSocket != "" {
		return findSigner(ctx, o, c, client, log)
	}
	store, err := openStore(o, c, client)
	if err != nil {
		return nil, err
	}
	// An unreadable ring is an error at start. Whether its past is missing, and whether a first one is made, is known once
	// the server has its storage.
	ring, _, err := store.Load(ctx)
	if err != nil && !errors.Is(err, keystore.ErrNotFound) {
		return nil, fmt.Errorf("load signing keys: %w", err)
	}
	remembering := &keyring.Remembering{Store: store, WriteBack: o.KeysSecret != "", Log: log}
	return ownRing{store: remembering, first: ring, follower: keyring.NewFollower(keyring.Following{
		Store: remembering, Interval: o.KeysInterval, Clock: clock.RealClock{}, Random: rand.Float64, Log: log,
	})}, nil
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
type ownRing struct {
	store    *keyring.Remembering
	first    keys.Ring // as it was at start, or empty
	follower *keyring.Follower
}

func (r ownRing) sign(config *issuer.Config) {
	config.Ring, config.Unusable = r.follower.Signing, r.follower.Unusable
}

func (r ownRing) atStart() []identity.PublicKey { return r.first.Published() }

// published are the keys of the last good ring, whatever is stored by now.
func (r ownRing) published() []identity.PublicKey {
	newest, _ := r.follower.Newest()
	return newest.Ring.Published()
}

func (r ownRing) revoked() []keys.Compromised {
	newest, _ := r.follower.Newest()
	return newest.Ring.Compromised
}

// unready returns why no token of any algorithm can be signed now.
func (r ownRing) unready() error {
	ring, readAt := r.follower.Signing()
	now := time.Now()
	for _, algorithm := range keys.Algorithms() {
		if key, ok := ring.Signer(algorithm); ok && key.Terms.MaySign(readAt, now) {
			return nil
		}
	}
	if err := r.follower.Unusable(); err != nil {
		return err
	}
	return fmt.Errorf("no key may sign: the ring of keys was read last at %s", readAt.UTC().Format(time.RFC3339))
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
	return keyring.Operator{Store: r.store, Clock: clock.RealClock{}, Generate: keys.NewPrivate, Done: r.follower.Nudge}
}
