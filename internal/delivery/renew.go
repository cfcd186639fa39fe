package delivery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
)

// renew requests a token and writes it.
func (r *requestor) renew(ctx context.Context, w *work) time.Duration {
	if immutable := w.secret.Immutable; immutable != nil && *immutable {
		return r.stand(w, failure{WriteFailed, "SecretImmutable", "no token can be written into the Secret, as it is immutable: delete it, and create it without immutable: true"})
	}
	now := r.clock.Now()
	if wait := r.ledger.wait(w.key, w.attempt(), now); wait > 0 {
		return wait
	}
	if wait := r.ledger.get(w.key).tokens.hold(now, r.random); wait > 0 {
		return wait
	}
	if !r.outage.pass(w.key, w.request.Identity.Namespace, w.expiry()) {
		w.waits = true
		return 0
	}
	if denied, err := r.denied(ctx, w); err != nil {
		return r.retry(w, failure{ReviewFailed, "ReviewFailed", err.Error()})
	} else if denied != "" {
		if tokensecret.ServiceAccountContext(w.request.Context) {
			r.onAccount(w, "UseDenied", denied)
		}
		return r.retry(w, failure{UseDenied, "UseDenied", denied})
	}
	m := r.unwritten(w)
	if m == nil {
		token, err := r.tokens.Token(ctx, w.request.Identity, w.identity.UID, w.context, r.duration)
		if err != nil {
			return r.requestFailed(ctx, w, err)
		}
		r.outage.answered(w.request.Identity.Namespace)
		fresh, err := r.check(w, token)
		if err != nil {
			return r.retry(w, failure{TokenUnusable, "TokenUnusable", err.Error()})
		}
		m = &minted{token: token, fresh: fresh, renewAt: r.window.Draw(fresh.IssuedAt, fresh.Expiry, r.random), digest: w.want.Digest}
	}
	version, err := r.write(ctx, w, m.token, m.renewAt)
	if err != nil {
		r.ledger.change(w.key, func(e *entry) { e.minted = m })
		return r.retry(w, failure{WriteFailed, "WriteFailed", fmt.Sprintf("write the token: %v", err)})
	}
	fresh, renewAt := m.fresh, m.renewAt
	r.recorder.renewals.WithLabelValues(string(w.decision.Reason)).Inc()
	r.ledger.wrote(w.key, version, fresh.Expiry, r.clock.Now())
	if account, _, ok := accountOf(w.secret); ok {
		r.renewals.done(account, w.key)
		r.accountDone(account)
	}
	r.log.InfoContext(ctx, "token renewed", "secret", w.key.String(), "identity", w.request.Identity.String(), "reason", w.decision.Reason,
		"jti", fresh.id, "expires", fresh.Expiry, "renewAt", renewAt)
	return max(renewAt.Sub(r.now()), time.Second)
}

// attempt is what a failure is remembered for: with another one, the next attempt is made at once.
func (w *work) attempt() string {
	requester := sha256.New()
	for _, annotation := range tokensecret.RequesterAnnotations() {
		fmt.Fprintf(requester, "%q", w.secret.Annotations[annotation])
	}
	return w.want.Digest + string(requester.Sum(nil))
}

// minted is a token that is to be written.
type minted struct {
	token   identity.Token
	fresh   freshToken
	renewAt time.Time
	digest  string // of its inputs
}

// unwritten returns the token that could not be written at the last try, if it is still wanted: while the workload cluster
// accepts no writes, each try must not cost a token. A request for a new token means a newer one.
func (r *requestor) unwritten(w *work) *minted {
	m := r.ledger.get(w.key).minted
	if m == nil || m.digest != w.want.Digest || r.state(w).Requested || !r.now().Before(m.renewAt) || w.want.Revoked(m.fresh.KeyID) {
		return nil
	}
	return m
}

func (w *work) expiry() time.Time {
	if w.token == nil {
		return time.Time{}
	}
	return w.token.Expiry
}

// denied returns why the user on whose behalf the token is requested may not use the identity, or "". It is the service
// account that is the context, or else the user who labelled the Secret, if that is known.
func (r *requestor) denied(ctx context.Context, w *work) (string, error) {
	if !tokensecret.ServiceAccountContext(w.request.Context) {
		user, known := tokensecret.RequestedBy(w.secret)
		if !known {
			return "", nil
		}
		allowed, err := mayUse(ctx, r.reviews, user, w.request.Identity)
		if err != nil || allowed {
			return "", err
		}
		return fmt.Sprintf("%s, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity %s, so no new token is written: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it again, "+
			"for instance with: kubectl create rolebinding NAME -n %s --clusterrole=credence:workloadidentities:user --user=%s; or a user who may use it takes the Secret over: "+
			"kubectl annotate secret %s -n %s --overwrite %s=me",
			user.Name, w.request.Identity, w.request.Identity.Namespace, user.Name, w.key.Name, w.key.Namespace, v1alpha1.AnnotationRequester), nil
	}
	account := types.NamespacedName{Namespace: w.request.Context.Namespace, Name: w.request.Context.Name}
	allowed, err := mayUse(ctx, r.reviews, accountUser(account, w.request.Context.UID), w.request.Identity)
	if err != nil || allowed {
		return "", err
	}
	return mayNotUse(account, w.request.Identity), nil
}

func mayNotUse(account, identity types.NamespacedName) string {
	return fmt.Sprintf("service account %s may not use the WorkloadIdentity %s, so it gets no tokens: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it, for instance with: "+
		"kubectl create rolebinding %s-uses-identities -n %s --clusterrole=credence:workloadidentities:user --serviceaccount=%s:%s",
		account, identity, account.Name, identity.Namespace, account.Namespace, account.Name)
}

// freshToken has the claims of a new token.
type freshToken struct {
	renewal.Token
	id string
}

// check sees that an answer is a token of the identity, and learns how far the issuer's clock is from ours.
func (r *requestor) check(w *work, token identity.Token) (freshToken, error) {
	inspection, err := relyingparty.Inspect(token.Reveal())
	if err != nil {
		return freshToken{}, fmt.Errorf("the answer to a token request can't be read: %w", err)
	}
	if inspection.Subject != w.identity.Status.Sub {
		return freshToken{}, fmt.Errorf("the answer to a token request is of the subject %q, that of the identity is %q", inspection.Subject, w.identity.Status.Sub)
	}
	if inspection.IssuedAt.IsZero() || inspection.Expiry.Sub(inspection.IssuedAt) < time.Second {
		return freshToken{}, fmt.Errorf("the answer to a token request is valid from %s to %s", inspection.IssuedAt, inspection.Expiry)
	}
	r.learn(inspection.IssuedAt)
	return freshToken{renewal.Token{KeyID: inspection.KeyID, IssuedAt: inspection.IssuedAt, Expiry: inspection.Expiry}, inspection.ID}, nil
}

// tolerated is how far apart clocks may be without a word.
const tolerated = time.Minute

// learn takes over the issuer's clock where it is far from ours: by ours, every token could look expired, or from the future.
func (r *requestor) learn(issuedAt time.Time) {
	offset := issuedAt.Sub(r.clock.Now())
	if offset.Abs() <= tolerated {
		offset = 0
	}
	before := time.Duration(r.offset.Swap(int64(offset)))
	if (offset == 0) != (before == 0) {
		r.log.Warn("the clocks of this machine and of the issuer differ; tokens are renewed by the issuer's", "ahead", offset.String())
	}
}

// write puts the token, and its other fields, into the Secret, unless the Secret's request has changed meanwhile. It returns the
// resource version that the Secret has then.
func (r *requestor) write(ctx context.Context, w *work, token identity.Token, renewAt time.Time) (string, error) {
	const tries = 4
	secret := w.secret
	for try := 1; ; try++ {
		out := r.filled(secret, w, token, renewAt)
		err := r.client.Patch(ctx, out, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{}))
		if err == nil || !apierrors.IsConflict(err) || try == tries {
			return out.ResourceVersion, err
		}
		var newer corev1.Secret
		if err := r.live.Get(ctx, w.key, &newer); err != nil {
			return "", err
		}
		if again, err := tokensecret.Parse(&newer); err != nil || newer.UID != w.secret.UID || !tokensecret.Labelled(&newer) || again.Identity != w.request.Identity || !sameContext(again.Context, w.request.Context) {
			return "", errors.New("its request has changed meanwhile")
		}
		secret = &newer
	}
}

func sameContext(a, b *v1alpha1.ContextObject) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// filled returns the Secret with its new token. Whatever else it holds stays.
func (r *requestor) filled(secret *corev1.Secret, w *work, token identity.Token, renewAt time.Time) *corev1.Secret {
	out := secret.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	out.Data[v1alpha1.SecretToken] = []byte(token.Reveal())
	if w.config != nil {
		out.Data[v1alpha1.SecretConfig] = w.config
	} else {
		delete(out.Data, v1alpha1.SecretConfig)
	}
	out.Labels[v1alpha1.LabelProvider] = w.identity.Spec.TargetSystem.Type
	out.Annotations[v1alpha1.AnnotationRenewTimestamp] = renewAt.Format(time.RFC3339)
	out.Annotations[v1alpha1.AnnotationInputs] = renewal.Seal(w.want.Digest, out.Data[v1alpha1.SecretToken])
	delete(out.Annotations, v1alpha1.AnnotationOrphaned)
	// An annotation that was set after the request for this token is answered by the next.
	if w.secret.Annotations[v1alpha1.AnnotationOperation] == v1alpha1.OperationRenewToken {
		delete(out.Annotations, v1alpha1.AnnotationOperation)
	}
	return out
}
