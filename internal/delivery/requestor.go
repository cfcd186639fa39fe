package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
)

// requestor keeps the tokens of Secrets fresh.
type requestor struct {
	client     client.Client // reads from the cache
	live       client.Reader // reads the API
	identities Identities
	tokens     Tokens
	keys       Keys
	reviews    authority.Reviewer
	// oneCluster reports whether identities and service accounts are of the same cluster: only then an account can be a context.
	oneCluster bool
	window     renewal.Window
	duration   time.Duration
	clock      clock.PassiveClock
	random     func() float64

	events   Events
	recorder *Recorder
	ledger   *ledger
	outage   *outage
	renewals *renewals
	reports  *reports.Reporter // nil: no reports
	// accountDone is called with an account all of whose Secrets may have their requested tokens.
	accountDone func(types.NamespacedName)
	log         *slog.Logger

	// offset is how far the clock of the issuer is ahead, where that is more than a token's clock may be; nanoseconds.
	offset atomic.Int64
}

// cacheLag is after how long a Secret is looked at again that the cache does not show as it was written.
const cacheLag = time.Second

// Reconcile looks at one Secret, and renews its token if that is due. It never returns an error: waits are its own.
func (r *requestor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.client.Get(ctx, request.NamespacedName, &secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if !tokensecret.Labelled(&secret) || secret.DeletionTimestamp != nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if r.ledger.stale(request.NamespacedName, secret.ResourceVersion, r.clock.Now()) {
		return reconcile.Result{RequeueAfter: cacheLag}, nil // the cache shows the write in a moment, which queues it again
	}
	look := r.look(&secret)
	a := r.advance(ctx, look)
	after := r.end(ctx, look, a)
	if a.step != awaitTurn && a.step != unanswered && a.step != throttled {
		r.outage.forget(look.key)
	}
	r.report(look)
	return reconcile.Result{RequeueAfter: after}, nil
}

// look is what a Secret holds, and what is remembered of it.
func (r *requestor) look(secret *corev1.Secret) *state {
	s := &state{key: client.ObjectKeyFromObject(secret), secret: secret, token: storedToken(secret), random: r.random}
	s.request, s.invalid = tokensecret.Parse(secret)
	s.memory = r.ledger.change(s.key, func(e *entry) { e.expiry = s.expiry() })
	s.requested = secret.Annotations[v1alpha1.AnnotationOperation] == v1alpha1.OperationRenewToken
	if account, _, ok := accountOf(secret); ok && r.renewals.requested(account, s.key) {
		s.requested = true
	}
	return s
}

// advance carries out actions until one ends the look, which it returns.
func (r *requestor) advance(ctx context.Context, s *state) action {
	id := s.request.Identity
	for {
		s.local, s.now = r.clock.Now(), r.now()
		switch a := next(s); a.step {
		case readIdentity:
			s.identity = found(r.identities.Get(ctx, id.Namespace, id.Name))
		case checkOwner:
			s.foreign = found(r.foreign(ctx, s))
		case makePlan:
			s.plan = found(r.plan(s))
		case takeTurn:
			s.turn = found(r.outage.pass(s.key, id.Namespace, s.expiry()), nil)
		case checkUse:
			s.denied = found(r.denied(ctx, s))
		case reuseToken:
			s.minted = found(s.memory.minted, nil)
		case requestToken:
			s.minted = found(r.mint(ctx, s))
		case tryReads:
			_, err := r.identities.Read(ctx, id.Namespace, id.Name)
			s.reads = found(err == nil || cause(err) != Unreachable, nil)
		case writeToken:
			s.written = found(r.write(ctx, s))
		default:
			return a
		}
	}
}

// end carries out the last action of a look, and returns after how long the next one is due; 0: when something changes.
func (r *requestor) end(ctx context.Context, s *state, a action) time.Duration {
	switch a.step {
	case settled:
		r.ledger.change(s.key, func(e *entry) { *e = entry{expiry: e.expiry, tokens: e.tokens, marks: e.marks, version: e.version} })
	case unanswered:
		r.outage.unanswered(s.key, s.request.Identity.Namespace, s.expiry(), s.reads.value)
		r.warn(s, a.failure)
	case throttled:
		r.outage.throttled(s.key, s.request.Identity.Namespace, s.expiry(), retryAfter(s.minted.err))
		r.warn(s, a.failure)
	case stand:
		r.warn(s, a.failure)
	case retry:
		return r.retry(s, a.failure)
	case orphan:
		return r.orphan(ctx, s, a.failure)
	case renewed:
		r.renewed(ctx, s)
	}
	return a.after
}

func (r *requestor) forget(key types.NamespacedName) {
	r.ledger.forget(key)
	r.outage.forget(key)
	r.reports.Remove(key)
}

// report updates a Secret in the status of its identity.
func (r *requestor) report(s *state) {
	wi := s.identity.value
	if wi == nil {
		r.reports.Remove(s.key)
		return
	}
	e := r.ledger.get(s.key)
	r.reports.Set(s.key, reports.Secret{Identity: s.request.Identity, UID: wi.UID, Expiry: e.expiry, Reason: e.reported.reason, Message: e.reported.message})
}

// foreign returns why a Secret that names a service account as its context is not the agent's own, or "".
func (r *requestor) foreign(ctx context.Context, s *state) (string, error) {
	if !tokensecret.ServiceAccountContext(s.request.Context) {
		return "", nil
	}
	wrong, err := own(ctx, r.client, s.secret, s.request)
	if wrong != "" || err != nil || s.secret.Annotations[v1alpha1.AnnotationReleased] != "" {
		return wrong, err
	}
	on, err := enabled(ctx, r.client, s.key.Namespace)
	if err == nil && !on {
		wrong = fmt.Sprintf("the namespace %s has no label %s=%s any more", s.key.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
	return wrong, err
}

// plan works out what the token should be, and whether a new one is due.
func (r *requestor) plan(s *state) (plan, error) {
	wi := s.identity.value
	config, err := tokensecret.Config(wi.Spec.TargetSystem.ProviderConfig)
	if err != nil {
		return plan{}, err
	}
	p := plan{config: config, context: s.request.Context}
	if tokensecret.ServiceAccountContext(p.context) && !r.oneCluster {
		p.context = nil
	}
	p.want = renewal.Want{
		Subject:   wi.Status.Sub,
		Audiences: wi.Spec.Audiences,
		Digest:    renewal.Inputs{UID: string(wi.UID), Issuer: wi.Status.Issuer, Audiences: wi.Spec.Audiences, Config: config, Context: p.context}.Digest(),
		Revoked:   r.keys.Revoked,
	}
	p.decision = renewal.Decide(s.stored(p, wi.Spec.TargetSystem.Type), p.want, s.now)
	return p, nil
}

// stored is what the Secret holds.
func (s *state) stored(p plan, targetType string) renewal.State {
	annotations := s.secret.Annotations
	stored := renewal.State{Token: s.token, RenewAt: annotations[v1alpha1.AnnotationRenewTimestamp], Requested: s.requested}
	_, marked := annotations[v1alpha1.AnnotationOrphaned]
	if !marked && annotations[v1alpha1.AnnotationInputs] == renewal.Seal(p.want.Digest, s.secret.Data[v1alpha1.SecretToken]) &&
		bytes.Equal(s.secret.Data[v1alpha1.SecretConfig], p.config) && s.secret.Labels[v1alpha1.LabelProvider] == targetType {
		stored.Digest = p.want.Digest // else the token, or what stands beside it, is not what was written for these inputs
	}
	return stored
}

// storedToken returns the claims of a Secret's token; nil if it is missing or cannot be read.
func storedToken(secret *corev1.Secret) *renewal.Token {
	inspection, err := relyingparty.Inspect(string(secret.Data[v1alpha1.SecretToken]))
	if err != nil {
		return nil
	}
	return &renewal.Token{
		KeyID: inspection.KeyID, Subject: inspection.Subject, Audiences: inspection.Audience,
		IssuedAt: inspection.IssuedAt, Expiry: inspection.Expiry,
	}
}

// now is the time of the issuer's clock.
func (r *requestor) now() time.Time { return r.clock.Now().Add(time.Duration(r.offset.Load())) }
