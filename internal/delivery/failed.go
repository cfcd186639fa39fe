package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// again is how often the same failure is reported anew.
const again = 10 * time.Minute

// stand gives up until something changes. Failures that only people can mend are not tried again.
func (r *requestor) stand(w *work, f failure) time.Duration {
	r.warn(w, f)
	return 0
}

// retry tries again after a while.
func (r *requestor) retry(w *work, f failure) time.Duration {
	r.warn(w, f)
	return r.ledger.failed(w.key, w.attempt(), r.clock.Now(), longestWait(f.cause), r.random)
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
func (r *requestor) warn(w *work, f failure) {
	r.recorder.failures.WithLabelValues(string(f.cause)).Inc()
	now := r.clock.Now()
	first := false
	r.ledger.change(w.key, func(e *entry) {
		if first = e.reported != f || now.Sub(e.reportedAt) >= again; first {
			e.reported, e.reportedAt = f, now
		}
	})
	if !first {
		return
	}
	r.log.Warn("a Secret gets no token", "secret", w.key.String(), "identity", w.request.Identity.String(), "cause", f.cause, "message", f.message)
	r.events.workload.Event(w.secret, corev1.EventTypeWarning, f.reason, f.message)
	if w.identity != nil {
		r.events.identity.Event(reference(v1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity", w.identity.Namespace, w.identity.Name, string(w.identity.UID)),
			corev1.EventTypeWarning, f.reason, fmt.Sprintf("Secret %s: %s", w.key, f.message))
	}
}

// onAccount writes an Event on the service account that is the context.
func (r *requestor) onAccount(w *work, reason, message string) {
	if e := r.ledger.get(w.key); e.reported.reason == reason && r.clock.Since(e.reportedAt) < again {
		return
	}
	account := w.request.Context
	r.events.workload.Event(reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, reason, message)
}

// identityFailed is what follows when the identity could not be read.
func (r *requestor) identityFailed(ctx context.Context, w *work, err error) time.Duration {
	switch c := cause(err); c {
	case IdentityMissing:
		return r.orphaned(ctx, w, fmt.Sprintf("WorkloadIdentity %s does not exist", w.request.Identity))
	case Unreachable:
		return r.unanswered(w, err, false)
	default:
		return r.retry(w, failure{c, "IdentityUnreadable", r.forbidden(w.request.Identity, err)})
	}
}

// requestFailed is what follows when the identity cluster gave no token.
func (r *requestor) requestFailed(ctx context.Context, w *work, err error) time.Duration {
	c := cause(err)
	switch c {
	case Unreachable:
		_, readError := r.identities.Read(ctx, w.request.Identity.Namespace, w.request.Identity.Name)
		return r.unanswered(w, err, readError == nil || cause(readError) != Unreachable)
	case Throttled:
		w.waits = true
		r.outage.throttled(w.key, w.request.Identity.Namespace, w.expiry(), retryAfter(err))
		r.warn(w, failure{Throttled, "TokenRequestThrottled", fmt.Sprintf("the identity cluster takes no more requests for tokens of the namespace %s now: %v; the token stays, and is renewed once it does", w.request.Identity.Namespace, err)})
		return 0
	}
	r.outage.answered(w.request.Identity.Namespace)
	if c == IdentityMissing {
		return r.orphaned(ctx, w, fmt.Sprintf("WorkloadIdentity %s does not exist", w.request.Identity))
	}
	return r.retry(w, failure{c, "TokenRequestRefused", r.forbidden(w.request.Identity, err)})
}

func (*requestor) forbidden(identity types.NamespacedName, err error) string {
	if cause(err) != AgentForbidden {
		return fmt.Sprintf("the identity cluster refuses a token of WorkloadIdentity %s: %v", identity, err)
	}
	return fmt.Sprintf("the agent may not get tokens of WorkloadIdentity %s: %v; in the identity cluster, give the agent's user the role credence:agent:identities in the namespace %s",
		identity, err, identity.Namespace)
}

// unanswered is what follows when a request had no answer. reads reports whether the identity cluster answers reads.
func (r *requestor) unanswered(w *work, err error, reads bool) time.Duration {
	w.waits = true
	r.outage.unanswered(w.key, w.request.Identity.Namespace, w.expiry(), reads)
	r.warn(w, failure{Unreachable, "IdentityClusterUnreachable", fmt.Sprintf("the identity cluster gives no answer for WorkloadIdentity %s: %v; the token stays, and is renewed once there is one", w.request.Identity, err)})
	return 0
}

// orphaned handles a Secret whose identity does not exist any more: it is marked, and keeps its token until that
// expires.
func (r *requestor) orphaned(ctx context.Context, w *work, message string) time.Duration {
	expired := w.token == nil || !w.token.Expiry.After(r.now())
	if !expired {
		message += fmt.Sprintf("; its last token is kept until it expires at %s", w.token.Expiry.Format(time.RFC3339))
	}
	r.warn(w, failure{IdentityMissing, "IdentityMissing", message})
	out := w.secret.DeepCopy()
	if _, marked := out.Annotations[v1alpha1.AnnotationOrphaned]; !marked {
		out.Annotations[v1alpha1.AnnotationOrphaned] = r.clock.Now().UTC().Format(time.RFC3339)
	}
	if expired {
		// Pods that start now must not take it for one that is valid.
		delete(out.Data, v1alpha1.SecretToken)
		delete(out.Annotations, v1alpha1.AnnotationRenewTimestamp)
	}
	if len(out.Data) != len(w.secret.Data) || len(out.Annotations) != len(w.secret.Annotations) {
		if wait := r.ledger.get(w.key).marks.hold(r.clock.Now(), r.random); wait > 0 {
			return wait
		}
		if err := r.client.Patch(ctx, out, client.MergeFromWithOptions(w.secret, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return r.retry(w, failure{WriteFailed, "WriteFailed", fmt.Sprintf("mark the Secret: %v", err)})
		}
		r.ledger.marked(w.key, r.clock.Now())
	}
	if expired {
		return 0
	}
	return w.token.Expiry.Sub(r.now())
}
