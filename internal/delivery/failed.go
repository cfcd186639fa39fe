package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// again is how often the same failure is reported anew.
const again = 10 * time.Minute

// retry has a Secret tried again after a while.
func (r *requestor) retry(s *state, f failure) time.Duration {
	if s.written.err != nil {
		r.ledger.change(s.key, func(e *entry) { e.minted = s.minted.value })
	}
	if f.cause == UseDenied && tokensecret.ServiceAccountContext(s.request.Context) {
		r.onAccount(s, f)
	}
	r.warn(s, f)
	return r.ledger.failed(s.key, s.attempt(), s.local, longestWait(f.cause), r.random)
}

// longestWait bounds the wait after failures. A request that a cluster could not answer is repeated soon, at little cost;
// a refused one waits longer.
func longestWait(c Cause) time.Duration {
	if c == ServerFailed || c == ReviewFailed {
		return time.Minute
	}
	return 0
}

// warn counts a failure, and writes Events on the Secret and the identity: when it is another than before, and again from time to
// time.
func (r *requestor) warn(s *state, f failure) {
	r.recorder.failures.WithLabelValues(string(f.cause)).Inc()
	first := false
	r.ledger.change(s.key, func(e *entry) {
		if first = e.reported != f || s.local.Sub(e.reportedAt) >= again; first {
			e.reported, e.reportedAt = f, s.local
		}
	})
	if !first {
		return
	}
	r.log.Warn("a Secret gets no token", "secret", s.key.String(), "identity", s.request.Identity.String(), "cause", f.cause, "message", f.message)
	r.events.workload.Event(s.secret, corev1.EventTypeWarning, f.reason, f.message)
	if wi := s.identity.value; wi != nil {
		r.events.identity.Event(reference(v1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity", wi.Namespace, wi.Name, string(wi.UID)),
			corev1.EventTypeWarning, f.reason, fmt.Sprintf("Secret %s: %s", s.key, f.message))
	}
}

// onAccount writes an Event on the service account that is the context.
func (r *requestor) onAccount(s *state, f failure) {
	if e := r.ledger.get(s.key); e.reported.reason == f.reason && s.local.Sub(e.reportedAt) < again {
		return
	}
	account := s.request.Context
	r.events.workload.Event(reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, f.reason, f.message)
}

// orphan handles a Secret whose identity does not exist any more: it is marked, and keeps its token until that
// expires.
func (r *requestor) orphan(ctx context.Context, s *state, f failure) time.Duration {
	expired := s.token == nil || !s.token.Expiry.After(s.now)
	if !expired {
		f.message += fmt.Sprintf("; its last token is kept until it expires at %s", s.token.Expiry.Format(time.RFC3339))
	}
	r.warn(s, f)
	out := s.secret.DeepCopy()
	if _, marked := out.Annotations[v1alpha1.AnnotationOrphaned]; !marked {
		out.Annotations[v1alpha1.AnnotationOrphaned] = s.local.UTC().Format(time.RFC3339)
	}
	if expired {
		// Pods that start now must not take it for one that is valid.
		delete(out.Data, v1alpha1.SecretToken)
		delete(out.Annotations, v1alpha1.AnnotationRenewTimestamp)
	}
	if len(out.Data) != len(s.secret.Data) || len(out.Annotations) != len(s.secret.Annotations) {
		if wait := r.ledger.get(s.key).marks.hold(s.local, r.random); wait > 0 {
			return wait
		}
		if err := r.client.Patch(ctx, out, client.MergeFromWithOptions(s.secret, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return r.retry(s, failure{WriteFailed, "WriteFailed", fmt.Sprintf("mark the Secret: %v", err)})
		}
		r.ledger.marked(s.key, s.local)
	}
	if expired {
		return 0
	}
	return s.token.Expiry.Sub(s.now)
}
