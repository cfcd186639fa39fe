package keyring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// remembered is a ring's past in another place, or the error of reading it.
type remembered struct {
	past keys.Past
	err  error
}

func (r *remembered) recall(context.Context) (keys.Past, error) { return r.past, r.err }

func TestRememberingStore(t *testing.T) {
	plain := newStore(t)
	others := &remembered{err: errors.New("no route to host")}
	store := &keyring.Remembering{Store: plain, Outside: others.recall}
	if _, _, err := store.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("before any place could be read: %v", err)
	}
	others.err = nil
	first, version, err := store.Load(t.Context())
	testkit.Must(t, err)
	others.err = errors.New("away")
	if _, _, err := store.Load(t.Context()); err != nil {
		t.Errorf("a past that was read once does not count: %v", err)
	}
	// A ring that this process has seen is known, too.
	_, next := keystoretest.Rings()
	testkit.Must(t, plain.Save(t.Context(), next, version))
	if _, _, err := store.Load(t.Context()); !errors.Is(err, keyring.ErrSuperseded) {
		t.Errorf("another ring in place of the one that was seen: %v", err)
	}

	others.err = nil
	revoked := first.Keys[0]
	others.past = keys.Past{Revoked: []keys.Compromised{{ID: revoked.ID, Algorithm: revoked.Algorithm, RevokedAt: keystoretest.Now()}}}
	operator := keyring.Operator{
		Store: store, Clock: testingclock.NewFakePassiveClock(keystoretest.Now()), Generate: keystoretest.RSAOnce(),
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: settings(t)}, nil },
	}
	operator.Generate = keys.NewPrivate
	cause := keys.Cause{By: "jane", Reason: "a backup was put back"}
	if dry, err := operator.Resume(t.Context(), cause, true); err != nil || !dry.Changed {
		t.Errorf("dry run: %+v, %v", dry.Events, err)
	}
	if _, _, err := store.Load(t.Context()); !errors.Is(err, keyring.ErrSuperseded) {
		t.Errorf("after a dry run: %v", err)
	}
	outcome, err := operator.Resume(t.Context(), cause, false)
	if err != nil || outcome.Made {
		t.Fatalf("resume: %v", err)
	}
	ring, _, err := store.Load(t.Context())
	testkit.Must(t, err, "a resumed ring")
	if got, _ := ring.Signer(identity.RS256); got.ID == revoked.ID {
		t.Error("the revoked key signs")
	}
}

// A ring is not used before what it knows is kept outside.
func TestRingIsRememberedFirst(t *testing.T) {
	others, kept, full := &remembered{}, keys.Past{}, errors.New("no space left")
	store := &keyring.Remembering{Store: newStore(t), Outside: others.recall, Remember: func(past keys.Past) error { kept = past; return full }}
	if _, version, err := store.Load(t.Context()); !errors.Is(err, full) || version != "" {
		t.Errorf("it could not be kept: version %q, %v", version, err)
	}
	full = nil
	if ring, _, err := store.Load(t.Context()); err != nil || len(kept.Published) != len(ring.Keys) {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

// The last past counts while the memory outside hangs, and the time to read the ring is not used up.
func TestHangingMemory(t *testing.T) {
	plain := newStore(t)
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		store := &keyring.Remembering{Store: plain, Outside: func(ctx context.Context) (keys.Past, error) {
			if hangs {
				<-ctx.Done()
			}
			return keys.Past{}, ctx.Err()
		}}
		if _, _, err := store.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		hangs = true
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, _, err := store.Load(ctx); err != nil || ctx.Err() != nil {
			t.Errorf("load: %v, its time: %v", err, ctx.Err())
		}
	})
}
