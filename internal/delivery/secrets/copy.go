package secrets

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/tokensecret"
)

// reviewEvery is how often the right of a user is reviewed on whose behalf data is copied.
const reviewEvery = time.Minute

// afterStrip is when a Secret is looked at again that could not be stripped.
const afterStrip = 2 * time.Second

// outlived reports whether the Secret holds data that was copied for a binding, and may not any more.
func (s *state) outlived() bool {
	held, present := tokensecret.CopiedInto(s.secret)
	switch {
	case !present:
		return false
	case s.secret.DeletionTimestamp != nil, s.invalid != nil, held.Binding != s.request.Binding, s.grant.value.Denied != "":
		return true
	case failures.Of(s.binding.err).Denied():
		return s.memory.deniedBefore(s.local)
	case s.binding.err != nil:
		return answered(s.binding.err)
	}
	return s.binding.known && s.binding.value.SecretRef == nil || s.denied.value != "" || s.data.value.lost
}

// strip is what follows once the Secret is to lose what it holds.
func strip(s *state) action {
	switch {
	case !s.stripped.known:
		return action{step: stripSecret}
	case s.stripped.err != nil && !apierrors.IsConflict(s.stripped.err):
		return action{stand, failures.Failure{Cause: failures.WriteFailed, Reason: "WriteFailed", Message: fmt.Sprintf("take out credentials: %v", s.stripped.err)}, afterStrip}
	}
	return action{step: wait, after: CacheLag} // the cache shows the write in a moment, which queues it again
}

// copyData is what is done about a Secret whose binding refers to a Secret, or that is to have the data of one for its context object.
func copyData(s *state) action {
	failed := func(c failures.Cause, reason, message string) action {
		return action{stand, failures.Failure{Cause: c, Reason: reason, Message: message}, s.nextCopy()}
	}
	from := s.data.value
	switch {
	case s.secret.Immutable != nil && *s.secret.Immutable:
		return fail(stand, failures.WriteFailed, "SecretImmutable", "no data can be copied into the Secret, as it is immutable: delete it, and create it without immutable: true")
	case !s.denied.known && !s.memory.reviewed(s.reviewKey(), s.local):
		return action{step: checkUse}
	case s.denied.err != nil:
		return failed(failures.ReviewFailed, "ReviewFailed", s.denied.err.Error())
	case s.denied.value != "":
		return failed(failures.UseDenied, "UseDenied", s.denied.value)
	case !s.data.known:
		return action{step: readData}
	case from.lost:
		return action{orphan, failures.Failure{Cause: failures.Of(from.err), Reason: "DataRefused", Message: fmt.Sprintf("the identity cluster gives no data of CredentialsBinding %s, so none is copied: %v", s.request.Binding, from.err)}, s.nextCopy()}
	case from.err != nil && answered(from.err):
		return action{step: wait, after: s.nextCopy()} // for a second one
	case from.err != nil:
		return failed(failures.Of(from.err), "IdentityClusterUnreachable", fmt.Sprintf("the identity cluster gives no answer about the data of CredentialsBinding %s: %v; what is copied stays until there is one", s.request.Binding, from.err))
	case s.carriesToken():
		return strip(s)
	case len(s.clashes()) > 0:
		return failed(failures.WriteFailed, "DataClashes", fmt.Sprintf("no data is copied: the Secret has keys of its own that CredentialsBinding %s brings too: %s: remove them, or name the binding in another Secret",
			s.request.Binding, strings.Join(s.clashes(), ", ")))
	case s.hasCopy():
		return action{step: settled, after: s.nextCopy()}
	case !s.copied.known:
		if held := s.memory.copies.Hold(s.local, s.random); held > 0 {
			return action{step: wait, after: min(held, copyEvery)}
		}
		return action{step: writeData}
	case apierrors.IsConflict(s.copied.err):
		return action{step: wait, after: CacheLag}
	case s.copied.err != nil:
		return failed(failures.WriteFailed, "WriteFailed", fmt.Sprintf("write the data: %v", s.copied.err))
	}
	return action{step: settled, after: s.nextCopy()}
}

// nextCopy is after how long the Secret is looked at for new data.
func (s *state) nextCopy() time.Duration {
	if !s.data.known {
		return copyEvery
	}
	return max(s.data.value.until.Sub(s.local), time.Second)
}

// reviewKey is what a review of rights is remembered for.
func (s *state) reviewKey() string { return s.request.Binding.String() + s.attempt() }

func (s *state) carriesToken() bool {
	_, token := s.secret.Data[v1alpha1.SecretToken]
	_, config := s.secret.Data[v1alpha1.SecretConfig]
	return token || config
}

// clashes are the keys that the Secret has of its own, and the data too.
func (s *state) clashes() []string {
	held, _ := tokensecret.CopiedInto(s.secret)
	var keys []string
	for key := range s.data.value.data {
		if _, present := s.secret.Data[key]; present && !slices.Contains(held.Keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *state) wanted() string {
	return tokensecret.Copied{Binding: s.request.Binding, Keys: slices.Sorted(maps.Keys(s.data.value.data))}.String()
}

// hasCopy reports whether the Secret holds the data as it is.
func (s *state) hasCopy() bool {
	for key, value := range s.data.value.data {
		if held, present := s.secret.Data[key]; !present || !bytes.Equal(held, value) {
			return false
		}
	}
	_, orphaned := s.secret.Annotations[v1alpha1.AnnotationOrphaned]
	return s.secret.Annotations[v1alpha1.AnnotationCopiedKeys] == s.wanted() && !orphaned && !s.requested
}

// copyInto writes the data into the Secret. Keys that it does not have any more go.
func (r *Controller) copyInto(ctx context.Context, s *state) error {
	out := s.secret.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	removeCopy(out)
	maps.Copy(out.Data, s.data.value.data)
	out.Annotations[v1alpha1.AnnotationCopiedKeys] = s.wanted()
	delete(out.Annotations, v1alpha1.AnnotationOrphaned)
	if s.requested {
		delete(out.Annotations, v1alpha1.AnnotationOperation)
	}
	err := r.patch(ctx, s, out)
	if err == nil {
		r.Ledger.Change(s.key, func(e *Entry) { e.copies = e.copies.After(s.local) })
		r.Log.InfoContext(ctx, "data copied", "secret", s.key.String(), "binding", s.request.Binding.String())
	}
	return err
}

// stripFrom takes out what the Secret must not hold any more: copied data that has outlived its binding, or the token if data is to take
// its place, with which the webhook takes out the keys that were made from config.
func (r *Controller) stripFrom(ctx context.Context, s *state) error {
	out := s.secret.DeepCopy()
	if s.outlived() {
		removeCopy(out)
	} else {
		delete(out.Data, v1alpha1.SecretToken)
		delete(out.Data, v1alpha1.SecretConfig)
		delete(out.Annotations, v1alpha1.AnnotationRenewTimestamp)
		delete(out.Annotations, v1alpha1.AnnotationInputs)
	}
	err := r.patch(ctx, s, out)
	if err == nil {
		r.Log.InfoContext(ctx, "credentials taken out", "secret", s.key.String())
	}
	return err
}

// patch writes a Secret that nothing else has changed meanwhile.
func (r *Controller) patch(ctx context.Context, s *state, out *corev1.Secret) error {
	return client.IgnoreNotFound(r.Client.Patch(ctx, out, client.MergeFromWithOptions(s.secret, client.MergeFromWithOptimisticLock{})))
}

// removeCopy takes the copied keys out of a Secret.
func removeCopy(secret *corev1.Secret) {
	held, _ := tokensecret.CopiedInto(secret)
	for _, key := range held.Keys {
		delete(secret.Data, key)
	}
	delete(secret.Annotations, v1alpha1.AnnotationCopiedKeys)
}
