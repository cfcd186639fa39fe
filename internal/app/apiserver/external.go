package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/ledgerstore"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
)

// signer is an external signer, which holds the keys and chooses among them.
type signer struct {
	follower *externalsigner.Follower
	first    []identity.PublicKey
	foundAt  time.Time
	changes  chan struct{}
	failures *metrics.CounterVec
}

// findSigner makes sure that there are keys to publish: those of the ledger, or at the first start those that the signer
// announces.
func findSigner(ctx context.Context, o *Options, c checked, client kubernetes.Interface, log *slog.Logger) (keySource, error) {
	remote, err := externalsigner.New(externalsigner.Config{Socket: o.SignerSocket})
	if err != nil {
		return nil, fmt.Errorf("--signer-socket: %w", err)
	}
	store := ledgerstore.ConfigMap{Client: client.CoreV1(), Namespace: c.signerLedger.Namespace, Name: c.signerLedger.Name}
	ledger, _, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of the external signer's keys: %w", err)
	}
	s := &signer{first: ledger.Published(), foundAt: time.Now(), changes: make(chan struct{}, 1), failures: metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "credence", Subsystem: "external_signer", Name: "failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Failures of the external signer, by reason.",
	}, []string{"reason"})}
	if ledger.StartedAt.IsZero() {
		announced, err := remote.Keys(ctx)
		if err != nil {
			return nil, fmt.Errorf("the external signer must be there at the first start: %w", err)
		}
		for _, key := range announced.Published {
			s.first = append(s.first, key.PublicKey)
		}
	}
	if err := legacyregistry.Register(s.failures); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	var said atomic.Pointer[string]
	s.follower, err = externalsigner.NewFollower(externalsigner.Following{
		Signer: remote, Store: store, Settings: c.settings, Clock: clock.RealClock{}, Random: rand.Float64,
		Surroundings: func(ctx context.Context) (*keys.Gate, []keys.Gate) {
			return documentsGate(ctx, places(o, c, client), c.issuer), nil
		},
		OnSnapshot: func(_ externalsigner.Snapshot, observed externalsigner.Observation) {
			if said.Swap(nil) != nil {
				log.Info("the external signer is back")
			}
			if observed.Changed {
				log.Info("keys of the external signer changed", "added", observed.Added, "withdrawn", observed.Withdrawn)
			}
			if len(observed.Returned) > 0 {
				log.Warn("the external signer announces keys that it had withdrawn or excluded, and they are published: if one was revoked, its tokens are accepted again until the signer withdraws it", "keys", observed.Returned)
			}
			select {
			case s.changes <- struct{}{}:
			default:
			}
		},
		OnError: func(err error) {
			s.failed(err)
			text := err.Error()
			if before := said.Swap(&text); before == nil || *before != text {
				log.Warn("the external signer's keys could not be taken, the last good ones stay published", "err", err)
			}
		},
	})
	return s, err
}

func (s *signer) failed(err error) {
	if reason, ok := externalsigner.ReasonOf(err); ok {
		s.failures.WithLabelValues(string(reason)).Inc()
	}
}

func (s *signer) sign(config *issuer.Config) { config.External = s }

func (s *signer) published() []identity.PublicKey {
	if snapshot, ok := s.follower.Snapshot(); ok {
		return snapshot.Ledger.Published()
	}
	return s.first
}

func (s *signer) atStart() []identity.PublicKey { return s.published() }

// revoked returns nothing: an external signer remembers for itself which keys it withdraws.
func (s *signer) revoked() []keys.Compromised { return nil }

func (s *signer) unready() error { return s.follower.Ready() }

func (s *signer) readAt() time.Time {
	if snapshot, ok := s.follower.Snapshot(); ok {
		return snapshot.ReadAt
	}
	return s.foundAt
}

func (s *signer) run(ctx context.Context, changed func()) {
	go s.follower.Run(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changes:
			changed()
		}
	}
}

func (s *signer) operator() keyring.Operator { return keyring.Operator{} }

// MaxLifetime implements issuer.External.
func (s *signer) MaxLifetime() (time.Duration, error) {
	if err := s.follower.Ready(); err != nil {
		return 0, fmt.Errorf("%w: %w", issuer.ErrNoSigningKey, err)
	}
	snapshot, _ := s.follower.Snapshot()
	return snapshot.MaxLifetime, nil
}

// SignClaims implements issuer.External.
func (s *signer) SignClaims(ctx context.Context, claims []byte, accepted []identity.Algorithm) (issuer.Signed, error) {
	signed, err := s.follower.SignClaims(ctx, claims, accepted)
	if err == nil {
		return issuer.Signed{Token: signed.Token, KeyID: signed.KeyID, Algorithm: signed.Algorithm}, nil
	}
	s.failed(err)
	switch reason, _ := externalsigner.ReasonOf(err); reason {
	case externalsigner.ReasonTooYoung, externalsigner.ReasonGates, externalsigner.ReasonNotReady, externalsigner.ReasonStore,
		externalsigner.ReasonTimeout, externalsigner.ReasonUnreachable:
		return issuer.Signed{}, fmt.Errorf("%w: %w", issuer.ErrNoSigningKey, err)
	}
	return issuer.Signed{}, err
}
