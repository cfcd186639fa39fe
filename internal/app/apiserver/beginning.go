package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	keyringregistry "github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

const resumeBy = "an operator of the keys puts a backup back, or accepts the loss by credence keys initialize --accept-loss"

// creating are the verbs that can create an object: a server-side apply is a patch.
var creating = []string{"create", "patch"}

// guarded are the resources of which nothing is created in a storage that was lost.
var guarded = []string{"workloadidentities", "credentialsbindings"}

// beginning is whether the server may go on with the keys and the storage that it found. Where an issuer has a past, nothing
// is made anew without a request.
type beginning struct {
	// empty is set while the storage has lost what was in it, and before that is known: nothing is created in it until that is accepted.
	empty atomic.Pointer[string]
	now   chan struct{}
}

func newBeginning() *beginning {
	b := &beginning{now: make(chan struct{}, 1)}
	b.empty.Store(new("whether the storage of the API server has lost what was in it is not known yet"))
	return b
}

// kept is the part of the server's own storage that shows a past.
type kept interface {
	// KeyRing returns the one KeyRing, or 404.
	KeyRing(context.Context) (*identityv1alpha1.KeyRing, error)
	// Ensure creates it where it is missing.
	Ensure(context.Context) error
	HasIdentities(context.Context) (bool, error)
}

type keptBy struct{ *apiserver.Server }

func (s keptBy) KeyRing(ctx context.Context) (*identityv1alpha1.KeyRing, error) {
	return s.KeyRings.KeyRing(ctx, identityv1alpha1.WorkloadIdentities)
}

func (s keptBy) Ensure(ctx context.Context) error {
	return s.KeyRings.Ensure(ctx, identityv1alpha1.WorkloadIdentities)
}

// confirmed is called when an operator has accepted the loss.
func (b *beginning) confirmed() {
	select {
	case b.now <- struct{}{}:
	default:
	}
}

// lost returns why nothing is created.
func (b *beginning) lost(why string) error {
	b.empty.Store(&why)
	return errors.New(why)
}

// guard keeps identities and bindings from being created in a storage that was lost: those that were in it may come back.
func (b *beginning) guard(build func(http.Handler, *genericapiserver.Config) http.Handler) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(next http.Handler, config *genericapiserver.Config) http.Handler {
		return build(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, ok := request.RequestInfoFrom(r.Context())
			if why := b.empty.Load(); why != nil && ok && info.IsResourceRequest && slices.Contains(creating, info.Verb) && slices.Contains(guarded, info.Resource) {
				status := apierrors.NewServiceUnavailable(*why).Status()
				status.APIVersion, status.Kind = "v1", "Status"
				w.Header().Set("Retry-After", "10")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(w).Encode(status) // the caller is gone if it fails
				return
			}
			next.ServeHTTP(w, r)
		}), config)
	}
}

// remember connects the store of keys with what is remembered of them.
func (a assembly) remember(server func() *apiserver.Server) {
	own, ok := a.keySource.(ownRing)
	if !ok {
		return
	}
	own.store.Outside = keyring.Outside(a.issuer, func(ctx context.Context) (*identityv1alpha1.KeyRing, error) {
		ring, err := server().KeyRings.KeyRing(ctx, identityv1alpha1.WorkloadIdentities)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return ring, err
	}, places(a.o, a.checked, a.client)...)
}

// begin makes the one KeyRing and the first ring where the issuer has no past. Where it has one and something of it is
// missing, it waits until that is back or the loss is accepted.
func (a assembly) begin(ctx context.Context, server *apiserver.Server, begun func()) {
	said := ""
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		err := a.tryBegin(ctx, keptBy{server})
		if err == nil {
			a.begun.empty.Store(nil)
			begun()
			return
		}
		if foreign, ok := errors.AsType[*keyringregistry.Foreign](err); ok {
			a.fail(a.refuse(foreign))
			return
		}
		if text := err.Error(); text != said {
			said = text
			a.log.WarnContext(ctx, "the issuer has not begun", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.begun.now:
		case <-time.After(pause):
		}
	}
}

func (a assembly) tryBegin(ctx context.Context, stored kept) error {
	own, ok := a.keySource.(ownRing)
	if !ok {
		return stored.Ensure(ctx)
	}
	_, err := stored.KeyRing(ctx)
	unknown := apierrors.IsNotFound(err)
	if err != nil && !unknown {
		return fmt.Errorf("read the KeyRing: %w", err)
	}
	ring, _, err := own.store.Store.Load(ctx)
	if errors.Is(err, keystore.ErrNotFound) {
		return a.makeFirst(ctx, stored, own, unknown)
	}
	if !unknown { // whatever the keys are, what was stored is there
		a.begun.empty.Store(nil)
	}
	switch {
	case err != nil:
		return err
	case ring.Resumed.Counts(time.Now()):
		operator := own.operator()
		operator.View = func(context.Context) (keys.View, error) { return keys.View{}, nil }
		if _, err := operator.Resume(ctx, ring.Resumed.Cause, false); err != nil {
			return err
		}
		a.log.WarnContext(ctx, "the loss of keys was accepted in the key store", "by", ring.Resumed.By, "reason", ring.Resumed.Reason, "at", ring.Resumed.At)
		return stored.Ensure(ctx)
	case unknown:
		return a.begun.lost(fmt.Sprintf("the storage of the API server is empty although there are keys: %s", resumeBy))
	}
	return nil
}

// makeFirst makes the first ring if the issuer has no past. The KeyRing comes first: keys beside an empty storage are what a
// lost storage looks like. unknown is set without a KeyRing.
func (a assembly) makeFirst(ctx context.Context, stored kept, own ownRing, unknown bool) error {
	past, err := own.store.Past(ctx)
	if err != nil {
		return err
	}
	identities, err := stored.HasIdentities(ctx)
	if err != nil {
		return fmt.Errorf("look for identities: %w", err)
	}
	published := !past.Empty()
	for _, place := range places(a.o, a.checked, a.client) {
		standing, err := place.Standing(ctx, a.issuer)
		if err != nil {
			return err
		}
		published = published || !standing.Empty
	}
	if published || identities {
		why := fmt.Sprintf("no signing keys are stored in %s, but the issuer has had keys: %s", own.store, resumeBy)
		if unknown {
			return a.begun.lost(why)
		}
		a.begun.empty.Store(nil) // the keys alone are lost
		return errors.New(why)
	}
	if err := stored.Ensure(ctx); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "the issuer has no keys and no past: making the first ones", "store", own.store.String())
	if _, _, err := keystore.LoadOrBootstrap(ctx, own.store.Store, keys.NewPrivate, time.Now()); err != nil {
		return a.begun.lost(fmt.Sprintf("the first signing keys could not be made: %v", err)) // identities without keys would be a past
	}
	own.follower.Nudge()
	return nil
}

// awaitKeys waits a moment for the first reading of the keys, so that no warning is given of what is only beginning.
func (a assembly) awaitKeys(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for a.readAt().IsZero() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// withoutKeys is what is published while there is no ring to publish. It is what stands there, unless a place shows a key that
// is known to be revoked: documents may have been put back with the ring. Then each place is given the keys of all places but
// the revoked ones, since the documents of one place may be older than those of another.
func (a assembly) withoutKeys(ctx context.Context) (publication.Issue, error) {
	stays := fmt.Errorf("there are no keys to publish: %w", a.unready())
	own, ok := a.keySource.(ownRing)
	if !ok {
		return publication.Issue{}, stays
	}
	past, err := own.store.Past(ctx)
	if err != nil {
		return publication.Issue{}, err
	}
	issue := publication.Issue{NextChange: time.Unix(0, 0)}
	for _, gone := range past.Revoked {
		issue.Revoked = append(issue.Revoked, revokedKey(gone))
	}
	var stay []identity.PublicKey
	shown := false
	for _, place := range places(a.o, a.checked, a.client) {
		standing, err := place.Standing(ctx, a.issuer)
		if err != nil {
			return publication.Issue{}, err
		}
		for _, key := range standing.Documents.PublicKeys() {
			switch {
			case slices.ContainsFunc(past.Revoked, func(gone keys.Compromised) bool { return gone.ID == key.ID }):
				shown = true
			case !slices.ContainsFunc(stay, func(k identity.PublicKey) bool { return k.ID == key.ID }):
				stay = append(stay, key)
			}
		}
	}
	if !shown {
		return publication.Issue{}, stays
	}
	issue.Documents, err = discovery.New(a.issuer, stay)
	return issue, err
}

func revokedKey(gone keys.Compromised) discovery.Revoked {
	return discovery.Revoked{ID: gone.ID, Algorithm: gone.Algorithm, At: gone.RevokedAt.UTC()}
}
