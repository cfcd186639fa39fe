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

// work is one Secret, with its state in one reconcile.
type work struct {
	secret   *corev1.Secret
	key      types.NamespacedName
	request  tokensecret.Request
	identity *v1alpha1.WorkloadIdentity
	config   []byte
	context  *v1alpha1.ContextObject // that is sent
	want     renewal.Want
	token    *renewal.Token
	decision renewal.Decision
	// waits reports whether the Secret waits for the identity cluster to answer.
	waits bool
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
	w := &work{secret: &secret, key: request.NamespacedName, token: storedToken(&secret)}
	after := r.keep(ctx, w)
	if !w.waits {
		r.outage.forget(w.key)
	}
	r.report(w)
	return reconcile.Result{RequeueAfter: after}, nil
}

func (r *requestor) forget(key types.NamespacedName) {
	r.ledger.forget(key)
	r.outage.forget(key)
	r.reports.Remove(key)
}

// report updates a Secret in the status of its identity.
func (r *requestor) report(w *work) {
	if w.identity == nil {
		r.reports.Remove(w.key)
		return
	}
	e := r.ledger.get(w.key)
	r.reports.Set(w.key, reports.Secret{Identity: w.request.Identity, UID: w.identity.UID, Expiry: e.expiry, Reason: e.reported.reason, Message: e.reported.message})
}

// keep returns after how long the Secret is looked at again; 0: when something changes.
func (r *requestor) keep(ctx context.Context, w *work) time.Duration {
	r.ledger.change(w.key, func(e *entry) {
		e.expiry = time.Time{}
		if w.token != nil {
			e.expiry = w.token.Expiry
		}
	})
	var err error
	if w.request, err = tokensecret.Parse(w.secret); err != nil {
		return r.stand(w, failure{AnnotationInvalid, "InvalidAnnotation", err.Error()})
	}
	if w.identity, err = r.identities.Get(ctx, w.request.Identity.Namespace, w.request.Identity.Name); err != nil {
		return r.identityFailed(ctx, w, err)
	}
	if w.identity.DeletionTimestamp != nil {
		return r.orphaned(ctx, w, fmt.Sprintf("WorkloadIdentity %s is being deleted", w.request.Identity))
	}
	if wrong, err := r.authority(ctx, w); err != nil {
		return r.retry(w, failure{ReviewFailed, "ReviewFailed", err.Error()})
	} else if wrong != "" {
		return r.retry(w, failure{NotOwn, "SecretNotOwned", "no tokens are written: " + wrong})
	}
	if err := r.expect(w); err != nil {
		return r.stand(w, failure{Refused, "InvalidProviderConfig", err.Error()})
	}
	if w.decision = renewal.Decide(r.state(w), w.want, r.now()); !w.decision.Renew() {
		r.ledger.change(w.key, func(e *entry) { *e = entry{expiry: e.expiry, tokens: e.tokens, marks: e.marks, version: e.version} })
		return max(w.decision.At.Sub(r.now()), time.Second)
	}
	return r.renew(ctx, w)
}

// authority returns why a Secret that names a service account as its context is not the agent's own, or "".
func (r *requestor) authority(ctx context.Context, w *work) (string, error) {
	if !tokensecret.ServiceAccountContext(w.request.Context) {
		return "", nil
	}
	wrong, err := own(ctx, r.client, w.secret, w.request)
	if wrong != "" || err != nil || w.secret.Annotations[v1alpha1.AnnotationReleased] != "" {
		return wrong, err
	}
	on, err := enabled(ctx, r.client, w.key.Namespace)
	if err == nil && !on {
		wrong = fmt.Sprintf("the namespace %s has no label %s=%s any more", w.key.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
	return wrong, err
}

// expect works out what the token should be.
func (r *requestor) expect(w *work) error {
	var err error
	if w.config, err = tokensecret.Config(w.identity.Spec.TargetSystem.ProviderConfig); err != nil {
		return err
	}
	w.context = w.request.Context
	if tokensecret.ServiceAccountContext(w.context) && !r.oneCluster {
		w.context = nil
	}
	w.want = renewal.Want{
		Subject:   w.identity.Status.Sub,
		Audiences: w.identity.Spec.Audiences,
		Digest: renewal.Inputs{
			UID: string(w.identity.UID), Issuer: w.identity.Status.Issuer, Audiences: w.identity.Spec.Audiences, Config: w.config, Context: w.context,
		}.Digest(),
		Revoked: r.keys.Revoked,
	}
	return nil
}

// state is what the Secret holds.
func (r *requestor) state(w *work) renewal.State {
	annotations := w.secret.Annotations
	state := renewal.State{
		Token:     w.token,
		RenewAt:   annotations[v1alpha1.AnnotationRenewTimestamp],
		Requested: annotations[v1alpha1.AnnotationOperation] == v1alpha1.OperationRenewToken,
	}
	if account, _, ok := accountOf(w.secret); ok && r.renewals.requested(account, w.key) {
		state.Requested = true
	}
	_, marked := annotations[v1alpha1.AnnotationOrphaned]
	if !marked && annotations[v1alpha1.AnnotationInputs] == renewal.Seal(w.want.Digest, w.secret.Data[v1alpha1.SecretToken]) &&
		bytes.Equal(w.secret.Data[v1alpha1.SecretConfig], w.config) && w.secret.Labels[v1alpha1.LabelProvider] == w.identity.Spec.TargetSystem.Type {
		state.Digest = w.want.Digest // else the token, or what stands beside it, is not what was written for these inputs
	}
	return state
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
