package secrets

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/tokensecret"
)

// state is what is known of a Secret while it is looked at: what it holds, what is remembered of it, and what the actions so far have found.
type state struct {
	key       types.NamespacedName
	secret    *corev1.Secret
	token     *renewal.Token // that the Secret holds; nil: none that can be read
	request   tokensecret.Request
	invalid   error // of the request
	requested bool  // a new token, by the Secret or its service account
	ofAccount bool  // a new token, by its service account
	memory    Entry
	local     time.Time // by the clock of this machine
	now       time.Time // by that of the issuer
	random    func() float64

	grant    fact[contexts.Grant]               // of a Secret whose context is an object of the identity cluster
	binding  fact[*v1alpha1.CredentialsBinding] // that the request names; the request has its identity then
	identity fact[*v1alpha1.WorkloadIdentity]
	foreign  fact[string] // why the Secret is not the agent's own, or ""
	plan     fact[plan]
	turn     fact[bool]   // may request a token now, as far as the identity cluster answers
	denied   fact[string] // why the identity may not be used, or ""
	minted   fact[*minted]
	reads    fact[bool]   // the identity cluster answers reads
	written  fact[string] // resource version
	data     fact[copied] // of the Secret to which the binding refers
	copied   fact[bool]   // the data was written
	stripped fact[bool]   // what the Secret must not hold any more was taken out
}

// fact is what an action has found; not known before.
type fact[T any] struct {
	known bool
	value T
	err   error
}

func found[T any](value T, err error) fact[T] { return fact[T]{true, value, err} }

// plan is the token that the Secret should hold, and whether a new one is due.
type plan struct {
	config   []byte
	context  *v1alpha1.ContextObject // that is sent
	want     renewal.Want
	decision renewal.Decision
}

// step is what an action does.
type step int

// The steps that find out one fact each, and then those that end a look.
const (
	readGrant step = iota
	readBinding
	readIdentity
	checkOwner
	makePlan
	takeTurn
	checkUse
	reuseToken
	requestToken
	tryReads
	writeToken
	readData
	writeData
	stripSecret

	settled    // no new token is due, and failures are over
	wait       // for the time of the next try
	awaitTurn  // until the identity cluster is known to answer
	unanswered // the same, after a request without an answer
	throttled  // the same, after an answer that requests are too many
	stand      // until something changes: only people can mend it
	retry      // after a while
	orphan     // the identity is gone
	renewed
)

// action is the next step. A look that ends has a failure or a time after which the next one is due, or neither: it waits for a change.
type action struct {
	step    step
	failure failures.Failure
	after   time.Duration
}

func fail(s step, c failures.Cause, reason, message string) action {
	return action{step: s, failure: failures.Failure{Cause: c, Reason: reason, Message: message}}
}

// next returns what is done about a Secret, as a function of what is known. It reads from top to bottom.
func next(s *state) action {
	switch {
	case s.outlived():
		return strip(s)
	case s.invalid != nil:
		return fail(stand, failures.AnnotationInvalid, "InvalidAnnotation", s.invalid.Error())
	case s.ofObject() && !s.grant.known:
		return action{step: readGrant}
	case s.grant.err != nil:
		return fail(retry, failures.ReviewFailed, "ReviewFailed", s.grant.err.Error())
	case s.grant.value.Denied != "":
		return fail(retry, failures.NotOwn, "SecretNotOwned", "no tokens are written: "+s.grant.value.Denied)
	case s.grant.value.Wait:
		return action{step: wait} // looked at again once that is over
	case s.ofObject() && s.request.Binding.Name != "":
		return copyData(s)
	case s.request.Binding.Name != "" && !s.binding.known:
		return action{step: readBinding}
	case s.binding.err != nil:
		return unlessDue(s, bindingFailed(s))
	case s.binding.known && s.binding.value.WorkloadIdentityRef == nil:
		return copyData(s)
	case !s.identity.known:
		return action{step: readIdentity}
	case s.identity.err != nil:
		return unlessDue(s, identityFailed(s))
	case s.identity.value.DeletionTimestamp != nil && !(s.byBinding().Name != "" && slices.Contains(s.identity.value.Finalizers, v1alpha1.FinalizerBindings)):
		return orphaned(fmt.Sprintf("WorkloadIdentity %s is being deleted", s.request.Identity))
	case !s.foreign.known:
		return action{step: checkOwner}
	case s.foreign.err != nil:
		return fail(retry, failures.ReviewFailed, "ReviewFailed", s.foreign.err.Error())
	case s.foreign.value != "":
		return fail(retry, failures.NotOwn, "SecretNotOwned", "no tokens are written: "+s.foreign.value)
	case !s.plan.known:
		return action{step: makePlan}
	case s.plan.err != nil:
		return fail(stand, failures.Refused, "InvalidProviderConfig", s.plan.err.Error())
	case !s.plan.value.decision.Renew():
		return action{step: settled, after: max(s.plan.value.decision.At.Sub(s.now), time.Second)}
	}
	return renew(s)
}

// ofObject reports whether the context is an object of the identity cluster.
func (s *state) ofObject() bool {
	return s.request.Context != nil && !tokensecret.ServiceAccountContext(s.request.Context)
}

// byBinding is the CredentialsBinding by which the token is requested: that of the Secret, or of its context object.
func (s *state) byBinding() types.NamespacedName {
	if s.request.Binding.Name != "" {
		return s.request.Binding
	}
	return s.grant.value.Binding
}

// renew is what is done about a Secret whose token is due.
func renew(s *state) action {
	if !s.turn.known {
		if immutable := s.secret.Immutable; immutable != nil && *immutable {
			return fail(stand, failures.WriteFailed, "SecretImmutable", "no token can be written into the Secret, as it is immutable: delete it, and create it without immutable: true")
		}
		if after := s.memory.Wait(s.attempt(), s.local); after > 0 {
			return action{step: wait, after: after}
		}
		if after := s.memory.tokens.Hold(s.local, s.random); after > 0 {
			return action{step: wait, after: after}
		}
		return action{step: takeTurn}
	}
	switch {
	case !s.turn.value:
		return action{step: awaitTurn}
	case !s.denied.known:
		return action{step: checkUse}
	case s.denied.err != nil:
		return fail(retry, failures.ReviewFailed, "ReviewFailed", s.denied.err.Error())
	case s.denied.value != "":
		return fail(retry, failures.UseDenied, "UseDenied", s.denied.value)
	case !s.minted.known && s.reusable():
		return action{step: reuseToken}
	case !s.minted.known:
		return action{step: requestToken}
	case s.minted.err != nil:
		return requestFailed(s)
	case !s.written.known:
		return action{step: writeToken}
	case s.written.err != nil:
		return fail(retry, failures.WriteFailed, "WriteFailed", fmt.Sprintf("write the token: %v", s.written.err))
	}
	return action{step: renewed, after: max(s.minted.value.renewAt.Sub(s.now), time.Second)}
}

// unlessDue returns an action without its failure if the identity cluster gave no answer, and nothing was due: the Secret is as it should be, and
// is looked at again. Else each restart of that cluster's API server would be a failure of all Secrets.
func unlessDue(s *state, a action) action {
	at, err := time.Parse(time.RFC3339, s.secret.Annotations[v1alpha1.AnnotationRenewTimestamp])
	fresh := err == nil && at.After(s.now) && s.token != nil && s.token.Expiry.After(s.now)
	_, copied := tokensecret.CopiedInto(s.secret)
	if a.failure.Cause == failures.Unreachable && !s.requested && (fresh || copied) {
		a.failure = failures.Failure{}
	}
	return a
}

// bindingFailed is what follows when the binding could not be read.
func bindingFailed(s *state) action {
	c := failures.Of(s.binding.err)
	if _, copied := tokensecret.CopiedInto(s.secret); copied && c.Denied() {
		return action{step: wait, after: confirmAfter} // for a second denial
	}
	switch c {
	case failures.IdentityMissing:
		return orphaned(fmt.Sprintf("CredentialsBinding %s does not exist", s.request.Binding))
	case failures.AgentUnauthorized:
		return fail(retry, c, "IdentityUnreadable", failures.Unauthorized(s.request.Binding.Namespace, fmt.Errorf("CredentialsBinding %s can't be read: %w", s.request.Binding, s.binding.err)))
	case failures.Unreachable:
		return fail(retry, c, "IdentityClusterUnreachable", fmt.Sprintf("the identity cluster gives no answer for CredentialsBinding %s: %v; the token stays, and is renewed once there is one", s.request.Binding, s.binding.err))
	default:
		return fail(retry, c, "IdentityUnreadable", fmt.Sprintf("CredentialsBinding %s can't be read: %v: a cluster admin of the identity cluster gives the agent's user the role credence:agent:identities in the namespace %s",
			s.request.Binding, s.binding.err, s.request.Binding.Namespace))
	}
}

// identityFailed is what follows when the identity could not be read.
func identityFailed(s *state) action {
	switch c := failures.Of(s.identity.err); c {
	case failures.IdentityMissing:
		return orphaned(fmt.Sprintf("WorkloadIdentity %s does not exist", s.request.Identity))
	case failures.Unreachable:
		return withoutAnswer(s, s.identity.err)
	default:
		return fail(retry, c, "IdentityUnreadable", failures.Forbidden(s.request.Identity, s.identity.err))
	}
}

// requestFailed is what follows when the identity cluster gave no token.
func requestFailed(s *state) action {
	id, err := s.request.Identity, s.minted.err
	if errors.As(err, new(unusable)) {
		return fail(retry, failures.TokenUnusable, "TokenUnusable", err.Error())
	}
	switch c := failures.Of(err); c {
	case failures.Unreachable:
		if !s.reads.known {
			return action{step: tryReads}
		}
		return withoutAnswer(s, err)
	case failures.Throttled:
		return fail(throttled, c, "TokenRequestThrottled", fmt.Sprintf("the identity cluster takes no more requests for tokens of the namespace %s now: %v; the token stays, and is renewed once it does", id.Namespace, err))
	case failures.IdentityMissing:
		return orphaned(fmt.Sprintf("WorkloadIdentity %s does not exist", id))
	default:
		return fail(retry, c, "TokenRequestRefused", failures.Forbidden(id, err))
	}
}

func withoutAnswer(s *state, err error) action {
	return fail(unanswered, failures.Unreachable, "IdentityClusterUnreachable", fmt.Sprintf("the identity cluster gives no answer for WorkloadIdentity %s: %v; the token stays, and is renewed once there is one", s.request.Identity, err))
}

func orphaned(message string) action {
	return fail(orphan, failures.IdentityMissing, "IdentityMissing", message)
}

// reusable reports whether the token that could not be written at the last try is still wanted: while the workload cluster accepts no
// writes, each try must not cost a token. A request for a new token means a newer one.
func (s *state) reusable() bool {
	m, want := s.memory.minted, s.plan.value.want
	return m != nil && m.digest == want.Digest && !s.requested && s.now.Before(m.renewAt) && !want.Revoked(m.fresh.KeyID)
}

// validity is when the stored token was issued, and when it expires, or zero.
func (s *state) validity() (issuedAt, expiry time.Time) {
	if s.token == nil {
		return time.Time{}, time.Time{}
	}
	return s.token.IssuedAt, s.token.Expiry
}

func (s *state) expiry() time.Time {
	_, expiry := s.validity()
	return expiry
}
