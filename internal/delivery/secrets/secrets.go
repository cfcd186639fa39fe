// Package secrets keeps the tokens of Secrets fresh. In go labelled Secrets and the identities that they name; out come tokens in them, with
// the config, and when the next one is due, or data that their bindings refer to. One function, next, decides what is done about a Secret.
package secrets

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
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/outage"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Identities finds identities of the identity cluster. Its errors are those of the API.
type Identities interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
	// Read is Get without what is remembered: a request to the identity cluster.
	Read(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
}

// Bindings finds CredentialsBindings of the identity cluster. Its errors are those of the API.
type Bindings interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.CredentialsBinding, error)
}

// Tokens requests tokens of the identity with a uid: another one of the same name is refused, and so is one to which a binding that is given
// does not refer. The context is nil for a token
// without one, the duration 0 for the server's default. Its errors are those of the API.
type Tokens interface {
	Token(ctx context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, duration time.Duration) (identity.Token, error)
}

// Keys returns the revoked signing keys.
type Keys interface {
	Revoked(keyID string) bool
}

// Contexts decides about Secrets whose context is an object of the identity cluster.
type Contexts interface {
	Grant(ctx context.Context, secret *corev1.Secret) (contexts.Grant, error)
}

// Renewals are the Secrets that are to get a new token because their service account requests it.
type Renewals interface {
	Requested(account, secret types.NamespacedName) bool
	Done(account, secret types.NamespacedName)
}

// Recorder counts tokens and failures.
type Recorder interface {
	Renewed(reason renewal.Reason)
	Failed(cause failures.Cause)
}

// Needs are what a Controller works with.
type Needs struct {
	Client     client.Client // reads from the cache
	Live       client.Reader // reads the API
	Identities Identities
	Bindings   Bindings
	Tokens     Tokens
	Data       Data
	Keys       Keys
	Reviews    authority.Reviewer
	// Contexts, if nil, lets no Secret have an object of the identity cluster as its context.
	Contexts Contexts
	// NamesAccounts reports whether tokens can have an account of the workload cluster as their context.
	NamesAccounts bool
	Window        renewal.Window
	Duration      time.Duration
	Clock         clock.PassiveClock
	Random        func() float64

	Events   workload.Events
	Recorder Recorder
	Ledger   *Ledger
	Outage   *outage.Outage
	Renewals Renewals
	Reports  *reports.Reporter // of identities; nil: no reports
	Uses     *reports.Reporter // of bindings; nil: no reports
	// OwnIdentities reports whether the identities and bindings are of the workload cluster itself.
	OwnIdentities bool
	// AccountDone is called with an account all of whose Secrets may have their requested tokens.
	AccountDone func(types.NamespacedName)
	Log         *slog.Logger
}

// Controller keeps the tokens of Secrets fresh.
type Controller struct {
	Needs
	sources sources
	// offset is how far the clock of the issuer is ahead, where that is more than a token's clock may be; nanoseconds.
	offset atomic.Int64
}

// New returns a Controller.
func New(needs Needs) *Controller {
	return &Controller{Needs: needs, sources: sources{data: needs.Data, clock: needs.Clock, last: map[origin]*source{}}}
}

// CacheLag is after how long a Secret is looked at again that the cache does not show as it was written.
const CacheLag = time.Second

// Reconcile looks at one Secret, and renews its token if that is due. It never returns an error: waits are its own.
func (r *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, request.NamespacedName, &secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	// A finalizer may keep a Secret for long after its deletion: it loses static credentials before it is forgotten.
	if _, copied := tokensecret.CopiedInto(&secret); !tokensecret.Labelled(&secret) || secret.DeletionTimestamp != nil && !copied {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if r.Ledger.Get(request.NamespacedName).stale(secret.ResourceVersion, r.Clock.Now()) {
		return reconcile.Result{RequeueAfter: CacheLag}, nil // the cache shows the write in a moment, which queues it again
	}
	look := r.look(&secret)
	a := r.advance(ctx, look)
	after := r.end(ctx, look, a)
	if a.step != awaitTurn && a.step != unanswered && a.step != throttled {
		r.Outage.Forget(look.key)
	}
	r.report(look)
	return reconcile.Result{RequeueAfter: after}, nil
}

// look is what a Secret holds, and what is remembered of it.
func (r *Controller) look(secret *corev1.Secret) *state {
	s := &state{key: client.ObjectKeyFromObject(secret), secret: secret, token: Stored(secret), random: r.Random}
	s.request, s.invalid = tokensecret.Parse(secret)
	s.memory = r.Ledger.Change(s.key, func(e *Entry) { e.IssuedAt, e.Expiry = s.validity() })
	s.requested = secret.Annotations[v1alpha1.AnnotationOperation] == v1alpha1.OperationRenewToken
	if account, _, ok := workload.AccountOf(secret); ok && r.Renewals.Requested(account, s.key) {
		s.requested, s.ofAccount = true, true
	}
	return s
}

// advance carries out actions until one ends the look, which it returns.
func (r *Controller) advance(ctx context.Context, s *state) action {
	for {
		s.local, s.now = r.Clock.Now(), r.now()
		id := s.request.Identity
		switch a := next(s); a.step {
		case readBinding:
			s.binding = found(r.Bindings.Get(ctx, s.request.Binding.Namespace, s.request.Binding.Name))
			r.Ledger.Change(s.key, func(e *Entry) { e.bindingAnswered(s.binding.err, r.Clock.Now()) })
			if s.binding.err == nil && s.binding.value.WorkloadIdentityRef != nil {
				s.request.Identity = types.NamespacedName{Namespace: s.binding.value.WorkloadIdentityRef.Namespace, Name: s.binding.value.WorkloadIdentityRef.Name}
			}
		case readGrant:
			s.grant = found(r.grant(ctx, s.secret))
		case readIdentity:
			s.identity = found(r.Identities.Get(ctx, id.Namespace, id.Name))
		case checkOwner:
			s.foreign = found(r.foreign(ctx, s))
		case makePlan:
			s.plan = found(r.plan(s))
		case takeTurn:
			s.turn = found(r.Outage.Pass(s.key, id.Namespace, s.expiry()), nil)
		case checkUse:
			if s.denied = found(workload.Denied(ctx, r.Reviews, s.secret, s.request)); s.denied.err == nil && s.denied.value == "" && s.request.Binding.Name != "" {
				r.Ledger.Change(s.key, func(e *Entry) { e.mayUse, e.mayUseAt = s.reviewKey(), s.local })
			}
		case reuseToken:
			s.minted = found(s.memory.minted, nil)
		case requestToken:
			s.minted = found(r.mint(ctx, s))
		case tryReads:
			_, err := r.Identities.Read(ctx, id.Namespace, id.Name)
			s.reads = found(err == nil || failures.Of(err) != failures.Unreachable, nil)
		case writeToken:
			s.written = found(r.write(ctx, s))
		case readData:
			from := r.sources.of(ctx, s.origin(), s.binding.value)
			s.data = found(from, from.err)
		case writeData:
			s.copied = found(true, r.copyInto(ctx, s))
		case stripSecret:
			s.stripped = found(true, r.stripFrom(ctx, s))
		default:
			return a
		}
	}
}

// end carries out the last action of a look, and returns after how long the next one is due; 0: when something changes.
func (r *Controller) end(ctx context.Context, s *state, a action) time.Duration {
	switch a.step {
	case settled:
		r.Ledger.Change(s.key, func(e *Entry) { e.Record, e.minted = failures.Record{}, nil })
	case unanswered:
		r.Outage.Unanswered(s.key, s.request.Identity.Namespace, s.expiry(), s.reads.value)
		r.warn(s, a.failure)
	case throttled:
		r.Outage.Throttled(s.key, s.request.Identity.Namespace, s.expiry(), failures.RetryAfter(s.minted.err))
		r.warn(s, a.failure)
	case stand:
		r.warn(s, a.failure)
	case retry:
		return r.retry(s, a.failure)
	case orphan:
		after := r.orphan(ctx, s, a.failure)
		if after == 0 || 0 < a.after && a.after < after {
			after = a.after
		}
		return after
	case renewed:
		r.renewed(ctx, s)
	}
	return a.after
}

func (r *Controller) forget(key types.NamespacedName) {
	r.Ledger.Forget(key)
	r.Outage.Forget(key)
	r.Reports.Remove(key)
	r.Uses.Remove(key)
}

// report updates a Secret in the status of its identity, and of the binding that it names. An object's binding is known by the object.
func (r *Controller) report(s *state) {
	switch named := s.request.Binding; {
	case s.invalid != nil || named.Name == "" || s.ofObject() || failures.Of(s.binding.err) == failures.IdentityMissing,
		r.Ledger.Get(s.key).Reported.Reason == "UseDenied": // it gets nothing by the binding
		r.Uses.Remove(s.key)
	case s.binding.value != nil:
		r.Uses.Set(s.key, reports.Secret{Identity: named, UID: s.binding.value.UID, Elsewhere: !r.OwnIdentities || s.key.Namespace != named.Namespace})
	}
	wi := s.identity.value
	if wi == nil {
		r.Reports.Remove(s.key)
		return
	}
	e := r.Ledger.Get(s.key)
	r.Reports.Set(s.key, reports.Secret{Identity: s.request.Identity, UID: wi.UID, IssuedAt: e.IssuedAt, Expiry: e.Expiry, Reason: e.Reported.Reason, Message: e.Reported.Message})
}

// foreign returns why a Secret that names a service account as its context is not the agent's own, or "".
func (r *Controller) foreign(ctx context.Context, s *state) (string, error) {
	if !tokensecret.ServiceAccountContext(s.request.Context) {
		return "", nil
	}
	wrong, err := own(ctx, r.Client, s.secret, s.request)
	if wrong != "" || err != nil || s.secret.Annotations[v1alpha1.AnnotationReleased] != "" {
		return wrong, err
	}
	on, err := workload.Enabled(ctx, r.Client, s.key.Namespace)
	if err == nil && !on {
		wrong = fmt.Sprintf("the namespace %s has no label %s=%s any more", s.key.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
	return wrong, err
}

// grant returns whether a Secret whose context is an object of the identity cluster may have a token.
func (r *Controller) grant(ctx context.Context, secret *corev1.Secret) (contexts.Grant, error) {
	if r.Contexts == nil {
		return contexts.Grant{Denied: "its annotation " + v1alpha1.AnnotationContextObject + " names an object of an identity cluster, and this agent makes Secrets for none: its cluster has not joined one"}, nil
	}
	return r.Contexts.Grant(ctx, secret)
}

// plan works out what the token should be, and whether a new one is due.
func (r *Controller) plan(s *state) (plan, error) {
	wi := s.identity.value
	config, err := tokensecret.Config(wi.Spec.TargetSystem.ProviderConfig)
	if err != nil {
		return plan{}, err
	}
	p := plan{config: config, context: s.request.Context}
	if tokensecret.ServiceAccountContext(p.context) && !r.NamesAccounts {
		p.context = nil
	}
	p.want = renewal.Want{
		Subject:   wi.Status.Sub,
		Audiences: wi.Spec.Audiences,
		Digest:    renewal.Inputs{UID: string(wi.UID), Issuer: wi.Status.Issuer, Audiences: wi.Spec.Audiences, Config: config, Context: p.context}.Digest(),
		Revoked:   r.Keys.Revoked,
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

// Stored returns the claims of a Secret's token; nil if it is missing or cannot be read.
func Stored(secret *corev1.Secret) *renewal.Token {
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
func (r *Controller) now() time.Time { return r.Clock.Now().Add(time.Duration(r.offset.Load())) }
