package secrets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

// retry has a Secret tried again after a while.
func (r *Controller) retry(s *state, f failures.Failure) time.Duration {
	if s.written.err != nil {
		r.Ledger.Change(s.key, func(e *Entry) { e.minted = s.minted.value })
	}
	if f.Cause == failures.UseDenied && tokensecret.ServiceAccountContext(s.request.Context) {
		r.onAccount(s, f)
	}
	r.warn(s, f)
	var wait time.Duration
	r.Ledger.Change(s.key, func(e *Entry) { wait = e.Failed(s.attempt(), s.local, longestWait(f.Cause), r.Random) })
	return wait
}

// longestWait bounds the wait after failures. A request that a cluster could not answer is repeated soon, at little cost;
// a refused one waits longer.
func longestWait(c failures.Cause) time.Duration {
	if c == failures.ServerFailed || c == failures.ReviewFailed {
		return time.Minute
	}
	return 0
}

// warn counts a failure, and writes Events on the Secret and the identity: when it is another than before, and again from time to
// time.
func (r *Controller) warn(s *state, f failures.Failure) {
	if f.Cause == "" {
		return // nothing was due
	}
	r.Recorder.Failed(f.Cause)
	first := false
	r.Ledger.Change(s.key, func(e *Entry) { first = e.Report(f, s.local) })
	if !first {
		return
	}
	r.Log.Warn("a Secret gets no token", "secret", s.key.String(), "identity", s.request.Identity.String(), "cause", f.Cause, "message", f.Message)
	r.Events.Workload.Event(s.secret, corev1.EventTypeWarning, f.Reason, f.Message)
	if wi := s.identity.value; wi != nil {
		r.Events.Identity.Event(workload.Reference(v1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity", wi.Namespace, wi.Name, string(wi.UID)),
			corev1.EventTypeWarning, f.Reason, fmt.Sprintf("Secret %s: %s", s.key, f.Message))
	}
}

// onAccount writes an Event on the service account that is the context.
func (r *Controller) onAccount(s *state, f failures.Failure) {
	if e := r.Ledger.Get(s.key); e.Reported.Reason == f.Reason && s.local.Sub(e.ReportedAt) < failures.Again {
		return
	}
	account := s.request.Context
	r.Events.Workload.Event(workload.Reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, f.Reason, f.Message)
}

// orphan handles a Secret whose identity does not exist any more: it is marked, and keeps its token until that
// expires.
func (r *Controller) orphan(ctx context.Context, s *state, f failures.Failure) time.Duration {
	expired := s.token == nil || !s.token.Expiry.After(s.now)
	if !expired {
		f.Message += fmt.Sprintf("; its last token is kept until it expires at %s", s.token.Expiry.Format(time.RFC3339))
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
		if wait := r.Ledger.Get(s.key).marks.Hold(s.local, r.Random); wait > 0 {
			return wait
		}
		if err := r.Client.Patch(ctx, out, client.MergeFromWithOptions(s.secret, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return r.retry(s, failures.Failure{Cause: failures.WriteFailed, Reason: "WriteFailed", Message: fmt.Sprintf("mark the Secret: %v", err)})
		}
		r.Ledger.Change(s.key, func(e *Entry) { e.marks = e.marks.After(s.local) })
	}
	if expired {
		return 0
	}
	return s.token.Expiry.Sub(s.now)
}
