package signer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/externalsigner/service"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// Run signs until ctx is done, then answers the requests in flight and returns nil. An error is a configuration that cannot
// work, keys that cannot be read, or a server that stopped by itself.
func Run(ctx context.Context, config Config) error {
	config, err := config.check()
	if err != nil {
		return serving.Usage(err)
	}
	store, err := keystore.OpenDirectory(config.KeysDir)
	if err != nil {
		return fmt.Errorf("--keys-dir: %w", err)
	}
	release, err := lock(config.KeysDir)
	if err != nil {
		return fmt.Errorf("--keys-dir %s: %w", config.KeysDir, err)
	}
	defer release()

	registry := serving.NewRegistry()
	remembered := remembering(config, store)
	signer, keeper, err := assemble(config, remembered, registry)
	if err != nil {
		return err
	}
	if err := begin(ctx, config, remembered); err != nil {
		return fmt.Errorf("--keys-dir %s: %w", config.KeysDir, err)
	}
	if err := keeper.Follower().Load(ctx); err != nil {
		return fmt.Errorf("--keys-dir %s: %w", config.KeysDir, err)
	}
	health, err := listenHealth(ctx, config)
	if err != nil {
		return err
	}
	socket, err := service.Listen(ctx, config.Socket)
	if err != nil {
		if health != nil {
			_ = health.Close()
		}
		return fmt.Errorf("--socket: %w", err)
	}
	config.Log.InfoContext(ctx, "signer started", "issuer", config.Issuer, "socket", config.Socket, "keysDir", config.KeysDir, "algorithm", config.Algorithm)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keeper.Run(ctx) })
	group.Go(func() error { return signer.Serve(ctx, socket) })
	if health != nil {
		group.Go(func() error {
			return serveHealth(ctx, health, serving.NewHealth(signer.Ready, registry, &serving.MetricsReaders{Anonymous: true}), config.Log)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	config.Log.Info("signer stopped")
	return nil
}

// begin makes the first ring where there are neither keys nor a past. A ring that an operator goes on with becomes the successor of its
// past.
func begin(ctx context.Context, config Config, store *keyring.Remembering) error {
	known, err := store.Past(ctx)
	if err != nil {
		return err
	}
	ring, _, err := store.Store.Load(ctx)
	switch {
	case errors.Is(err, keystore.ErrNotFound) && known.Empty():
		return makeFirst(ctx, config, store.Store)
	case errors.Is(err, keystore.ErrNotFound):
		return errLost
	case err != nil || !ring.Resumed.Counts(time.Now()):
		return err
	}
	operator := keyring.Operator{
		Store: store, Clock: clock.RealClock{}, Generate: keys.NewPrivate,
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: config.Settings}, nil },
	}
	if _, err := operator.Resume(ctx, ring.Resumed.Cause, false); err != nil {
		return err
	}
	config.Log.WarnContext(ctx, "the loss of keys was accepted in the key store", "by", ring.Resumed.By, "reason", ring.Resumed.Reason, "at", ring.Resumed.At)
	return nil
}

// makeFirst makes the first ring. Its terms are those of the settings from the start: they are never
// lowered, and those that stand for nothing known would keep the first keys for longer than any token lives.
func makeFirst(ctx context.Context, config Config, store keystore.Store) error {
	first, err := keys.Bootstrap(keys.NewPrivate, time.Now())
	if err != nil {
		return fmt.Errorf("make the first ring: %w", err)
	}
	for i := range first.Keys {
		if first.Keys[i].State == keys.Active {
			first.Keys[i].Terms = keys.Terms{MaxLifetime: config.Settings.MaxLifetime, Staleness: config.Settings.Staleness}
		}
	}
	if err := store.Save(ctx, first, ""); err != nil {
		return fmt.Errorf("save the first ring: %w", err)
	}
	config.Log.InfoContext(ctx, "no keys were found, so new ones were made", "keysDir", config.KeysDir)
	return nil
}

// assemble connects what signs with what keeps the ring: each knows of the other what it decides by.
func assemble(config Config, store keystore.Store, registry *prometheus.Registry) (*service.Service, *keyring.Keeper, error) {
	watched := &watch{log: config.Log}
	var signer *service.Service
	keeper := keyring.NewKeeper(keyring.Keeping{
		Following: keyring.Following{
			Store:    store,
			Interval: min(keyring.DefaultInterval, config.Settings.Staleness/2).Truncate(time.Second),
			Clock:    clock.RealClock{},
			Random:   rand.Float64,
			Log:      config.Log,
		},
		Settings: config.Settings,
		Generate: keys.NewPrivate,
		Surroundings: func(context.Context) keyring.Surroundings {
			// kube-apiserver publishes, and verifies with, the keys that it got.
			return keyring.Surroundings{Documents: &keys.Gate{Name: "kube-apiserver", Knows: signer.Announced()}}
		},
		OnRing:   watched.ring,
		OnEvents: watched.events,
	})
	ring := keeper.Follower()
	signer, err := service.New(service.Config{
		Issuer:    config.Issuer,
		Algorithm: identity.Algorithm(config.Algorithm),
		Ring: func() (keys.Ring, time.Time, bool) {
			newest, ok := ring.Newest()
			return newest.Ring, newest.ReadAt, ok
		},
		Signing: func() (keys.Ring, time.Time, bool) {
			usable, readAt := ring.Signing()
			return usable, readAt, !readAt.IsZero()
		},
		NextChange:  watched.nextChange,
		MaxLifetime: config.Settings.MaxLifetime,
		RefreshHint: config.Settings.MaxAge,
		Clock:       clock.RealClock{},
		Log:         config.Log,
		Recorder:    service.NewRecorder(registry),
	})
	return signer, keeper, err
}

func listenHealth(ctx context.Context, config Config) (net.Listener, error) {
	if config.HealthListener != nil || config.HealthPort == 0 {
		return config.HealthListener, nil
	}
	// Its answers are not secret, but there is no certificate, so it listens on this machine only.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(config.HealthPort)))
	if err != nil {
		return nil, fmt.Errorf("--health-port %d cannot be listened on, give another one: %w", config.HealthPort, err)
	}
	return listener, nil
}

var errLocked = errors.New("another signer has these keys: stop it, or give another folder")
