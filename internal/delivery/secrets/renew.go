package secrets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
)

// minted is a token that is to be written.
type minted struct {
	token   identity.Token
	fresh   freshToken
	renewAt time.Time
	digest  string // of its inputs
}

// unusable is why the answer to a token request is not a token of the identity.
type unusable struct{ error }

// mint requests a token. The error is an unusable, or one of the identity cluster.
func (r *Controller) mint(ctx context.Context, s *state) (*minted, error) {
	token, err := r.Tokens.Token(ctx, s.request.Identity, s.identity.value.UID, s.byBinding(), s.plan.value.context, r.Duration)
	if err != nil {
		if c := failures.Of(err); c != failures.Unreachable && c != failures.Throttled {
			r.Outage.Answered(s.request.Identity.Namespace)
		}
		return nil, err
	}
	r.Outage.Answered(s.request.Identity.Namespace)
	fresh, err := r.check(s, token)
	if err != nil {
		return nil, unusable{err}
	}
	return &minted{token: token, fresh: fresh, renewAt: r.Window.Draw(fresh.IssuedAt, fresh.Expiry, r.Random), digest: s.plan.value.want.Digest}, nil
}

// renewed records that a Secret has its new token.
func (r *Controller) renewed(ctx context.Context, s *state) {
	m := s.minted.value
	r.Recorder.Renewed(s.plan.value.decision.Reason)
	r.Ledger.Change(s.key, func(e *Entry) {
		*e = Entry{IssuedAt: m.fresh.IssuedAt, Expiry: m.fresh.Expiry, tokens: e.tokens.After(s.local), Version: s.written.value}
	})
	// A request that came after the one for this token is answered by the next.
	if account, _, ok := workload.AccountOf(s.secret); ok && s.ofAccount {
		r.Renewals.Done(account, s.key)
		r.AccountDone(account)
	}
	r.Log.InfoContext(ctx, "token renewed", "secret", s.key.String(), "identity", s.request.Identity.String(), "reason", s.plan.value.decision.Reason,
		"jti", m.fresh.id, "expires", m.fresh.Expiry, "renewAt", m.renewAt)
}

// attempt is what a failure is remembered for: with another one, the next attempt is made at once.
func (s *state) attempt() string {
	requester := sha256.New()
	for _, annotation := range tokensecret.RequesterAnnotations() {
		fmt.Fprintf(requester, "%q", s.secret.Annotations[annotation])
	}
	return s.plan.value.want.Digest + string(requester.Sum(nil))
}

// freshToken has the claims of a new token.
type freshToken struct {
	renewal.Token
	id string
}

// check sees that an answer is a token of the identity, and learns how far the issuer's clock is from ours.
func (r *Controller) check(s *state, token identity.Token) (freshToken, error) {
	inspection, err := relyingparty.Inspect(token.Reveal())
	if err != nil {
		return freshToken{}, fmt.Errorf("the answer to a token request can't be read: %w", err)
	}
	if inspection.Subject != s.identity.value.Status.Sub {
		return freshToken{}, fmt.Errorf("the answer to a token request is of the subject %q, that of the identity is %q", inspection.Subject, s.identity.value.Status.Sub)
	}
	if inspection.IssuedAt.IsZero() || inspection.Expiry.Sub(inspection.IssuedAt) < time.Second {
		return freshToken{}, fmt.Errorf("the answer to a token request is valid from %s to %s", inspection.IssuedAt, inspection.Expiry)
	}
	r.learn(inspection.IssuedAt)
	return freshToken{renewal.Token{KeyID: inspection.KeyID, IssuedAt: inspection.IssuedAt, Expiry: inspection.Expiry}, inspection.ID}, nil
}

// learn takes over the issuer's clock where it is far from ours: by ours, every token could look expired, or from the future.
func (r *Controller) learn(issuedAt time.Time) {
	offset := renewal.Ahead(issuedAt, r.Clock.Now())
	before := time.Duration(r.offset.Swap(int64(offset)))
	if (offset == 0) != (before == 0) {
		r.Log.Warn("the clocks of this machine and of the issuer differ; tokens are renewed by the issuer's", "ahead", offset.String())
	}
}

// write puts the token, and its other fields, into the Secret, unless the Secret's request has changed meanwhile. It returns the
// resource version that the Secret has then.
func (r *Controller) write(ctx context.Context, s *state) (string, error) {
	const tries = 4
	secret := s.secret
	for try := 1; ; try++ {
		out := filled(secret, s)
		err := r.Client.Patch(ctx, out, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{}))
		if err == nil || !apierrors.IsConflict(err) || try == tries {
			return out.ResourceVersion, err
		}
		var newer corev1.Secret
		if err := r.Live.Get(ctx, s.key, &newer); err != nil {
			return "", err
		}
		if again, err := tokensecret.Parse(&newer); err != nil || newer.UID != s.secret.UID || !tokensecret.Labelled(&newer) || !s.sameRequest(again) {
			return "", errors.New("its request has changed meanwhile")
		}
		secret = &newer
	}
}

// sameRequest reports whether a Secret requests what it did when it was looked at.
func (s *state) sameRequest(again tokensecret.Request) bool {
	if again.Binding != s.request.Binding || again.Binding.Name == "" && again.Identity != s.request.Identity {
		return false
	}
	return sameContext(again.Context, s.request.Context)
}

func sameContext(a, b *v1alpha1.ContextObject) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// filled returns the Secret with its new token. Whatever else it holds stays.
func filled(secret *corev1.Secret, s *state) *corev1.Secret {
	m, plan := s.minted.value, s.plan.value
	out := secret.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	out.Data[v1alpha1.SecretToken] = []byte(m.token.Reveal())
	if plan.config != nil {
		out.Data[v1alpha1.SecretConfig] = plan.config
	} else {
		delete(out.Data, v1alpha1.SecretConfig)
	}
	out.Labels[v1alpha1.LabelProvider] = s.identity.value.Spec.TargetSystem.Type
	if s.ofAccount || s.request.Context != nil {
		out.Labels[v1alpha1.LabelExcludedFromBackup] = "true" // the agent makes it anew
	}
	out.Annotations[v1alpha1.AnnotationRenewTimestamp] = m.renewAt.Format(time.RFC3339)
	out.Annotations[v1alpha1.AnnotationInputs] = renewal.Seal(plan.want.Digest, out.Data[v1alpha1.SecretToken])
	delete(out.Annotations, v1alpha1.AnnotationOrphaned)
	// An annotation that was set after the request for this token is answered by the next.
	if s.secret.Annotations[v1alpha1.AnnotationOperation] == v1alpha1.OperationRenewToken {
		delete(out.Annotations, v1alpha1.AnnotationOperation)
	}
	return out
}
