package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/election"
	"github.com/credence-id/credence/internal/app/serving/eventing"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// leaseName is the Lease that the leader holds. Two leaders would do no harm: the key store lets one of them save.
const leaseName = "credence-controller"

// requestTimeout bounds each question to the API: an unanswered one must not keep the ring from being looked after.
const requestTimeout = 10 * time.Second

// Run keeps the ring until ctx is done. An error is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	c, err := config.check()
	if err != nil {
		return serving.Usage(err)
	}
	cluster, err := serving.Cluster("--kubeconfig", c.Kubeconfig, "controller")
	if err != nil {
		return err
	}
	cluster.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	store, err := openStore(c, client)
	if err != nil {
		return err
	}
	if secret, ok := store.(*keystore.Secret); ok {
		store = keptSecret{secret}
	}
	rings, err := newKeyRings(cluster)
	if err != nil {
		return err
	}
	look, err := newLook(c, client)
	if err != nil {
		return err
	}
	registry := serving.NewRegistry()
	recorder := keyring.NewRecorder(registry, time.Now)
	r := &reconciler{issuer: c.issuer, rings: rings, look: look, log: c.Log, recorder: recorder, events: events{eventing.NewRecorder(ctx, client, "credence-controller", v1alpha1.AddToScheme)}}
	remembering := &keyring.Remembering{Store: store, Outside: r.remembered(c, client), WriteBack: c.KeysSecret != "", Log: c.Log}
	r.past = remembering.Past
	keeper := keyring.NewKeeper(keyring.Keeping{
		Following: keyring.Following{Store: remembering, Interval: c.KeysInterval, Clock: clock.RealClock{}, Random: rand.Float64, Log: c.Log},
		Settings:  c.Settings, Generate: keys.NewPrivate,
		Surroundings: r.surroundings, OnRing: r.onRing, OnFailure: r.onFailure, OnEvents: r.onEvents,
	})
	group, ctx := errgroup.WithContext(ctx)
	if err := c.Health.Start(ctx, group, readiness(keeper.Follower()), registry, cluster, c.Log); err != nil {
		return err
	}
	// Loaded before the election, so that unreadable keys are an error at the start of every replica.
	if err := loadFirst(ctx, keeper.Follower()); err != nil {
		return err
	}
	c.Log.Info("key controller started", "issuer", c.issuer, "rotationPeriod", c.Settings.RotationPeriod.String(), "publishPeriod", c.Settings.PublishPeriod.String(), "wait", c.Settings.Wait().String())
	group.Go(func() error {
		awaitFirst(ctx, keeper.Follower())
		return nil
	})
	group.Go(func() error {
		return election.Lead(ctx, client.CoordinationV1(), types.NamespacedName{Namespace: c.LeaseNamespace, Name: leaseName}, c.Log, keeper.Run)
	})
	return serving.Wait(group, c.Log, "key controller stopped")
}

// firstRing is how long the API server may take to make the first ring.
const firstRing = 30 * time.Second

// loadFirst reads the ring, which the API server may be about to make. One that is missing, or that is older than what is
// known of it, is for the leader to report.
func loadFirst(ctx context.Context, ring *keyring.Follower) error {
	limited, cancel := context.WithTimeout(ctx, firstRing)
	defer cancel()
	for {
		err := ring.Load(limited)
		switch {
		case err == nil || errors.Is(err, keyring.ErrSuperseded):
			return nil
		case errors.Is(err, keystore.ErrUnusable):
			return err
		}
		select {
		case <-limited.Done():
			if errors.Is(err, keystore.ErrNotFound) {
				return ctx.Err()
			}
			return err
		case <-time.After(askAgain):
		}
	}
}

// awaitFirst reads the ring until there is one. Only the leader follows it after that, and all others would never be ready if the first
// ring is made later than firstRing.
func awaitFirst(ctx context.Context, ring *keyring.Follower) {
	for {
		if _, loaded := ring.Newest(); loaded {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(askAgain):
			_ = ring.Load(ctx) // the leader reports why it fails
		}
	}
}

func openStore(c checked, client kubernetes.Interface) (keystore.Store, error) {
	if c.KeysSecret != "" {
		return keystore.NewSecret(client.CoreV1(), c.keysSecret.Namespace, c.keysSecret.Name), nil
	}
	store, err := keystore.OpenDirectory(c.KeysDir)
	if err != nil {
		return nil, fmt.Errorf("open key store: %w", err)
	}
	return store, nil
}
