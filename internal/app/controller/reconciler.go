package controller

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
)

// askAgain is after how long a failed request is repeated.
const askAgain = 500 * time.Millisecond

// reconciler makes the KeyRing show what the ring is, and the ring wait for the relying parties that the KeyRing names. Its functions are called
// one at a time.
type reconciler struct {
	issuer   identity.Issuer
	rings    keyRings
	look     look
	events   events
	log      *slog.Logger
	recorder *keyring.Recorder
	// past is all that is remembered of the ring.
	past func(context.Context) (keys.Past, error)

	// ring is the KeyRing as it was read for the ring that is looked at; nil if it could not be.
	ring      *v1alpha1.KeyRing
	documents *v1alpha1.PublishedDocuments
	problems  map[string]string
}

// surroundings reads which relying parties know which keys now. One that can't be read counts as knowing none.
func (r *reconciler) surroundings(ctx context.Context) keyring.Surroundings {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var around keyring.Surroundings
	ring, err := r.rings.get(ctx)
	r.problem(ctx, "the KeyRing could not be read: no key is activated", err)
	if err != nil {
		r.ring = nil
		around.Gates = []keys.Gate{{Name: "the relying parties of the KeyRing, which could not be read"}}
	} else {
		r.ring = ring
		around.Gates = report.Gates(ring.Spec.RelyingParties)
	}
	shown, err := r.look.keys(ctx)
	r.problem(ctx, "the published documents could not be read: no new key counts as published", err)
	around.Documents = &keys.Gate{Name: r.look.from, Knows: shown, Unread: err != nil}
	r.documents = &v1alpha1.PublishedDocuments{From: r.look.from, Keys: texts(shown)}
	if err != nil {
		r.documents.Message = err.Error()
	}
	if err != nil || r.ring == nil {
		around.Again = askAgain
	}
	return around
}

// onRing writes a ring into the KeyRing.
func (r *reconciler) onRing(ctx context.Context, kept keyring.Kept) {
	r.recorder.Observe(kept)
	r.recorder.Damaged(false)
	r.recorder.Superseded(false)
	if r.ring == nil {
		return
	}
	next := r.ring.DeepCopy()
	next.Status = report.Status(report.Observation{
		Issuer: r.issuer, Ring: kept.Ring, View: kept.View, Plan: kept.Plan, Generation: r.ring.Generation,
		Documents: r.documents, RelyingParties: r.ring.Spec.RelyingParties, Before: r.ring.Status.Conditions,
	})
	// The API server has recorded a revocation after the ring was read.
	if known := report.Past(r.ring.Status); known.Revision > kept.Ring.Revision {
		report.Remember(&next.Status, keys.Past{Revoked: known.Revoked, Revision: known.Revision})
	}
	if equality.Semantic.DeepEqual(r.ring.Status, next.Status) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.rings.updateStatus(ctx, next)
	if apierrors.IsConflict(err) {
		return // the spec was changed: it is read again soon
	}
	r.problem(ctx, "the status of the KeyRing could not be written", err)
	if err == nil {
		r.events.conditions(r.ring, next)
	}
}

// remembered is what the KeyRing, and the place where the documents are written, know of the ring.
func (r *reconciler) remembered(c checked, client kubernetes.Interface) func(context.Context) (keys.Past, error) {
	return keyring.Outside(c.issuer, func(ctx context.Context) (*v1alpha1.KeyRing, error) {
		ring, err := r.rings.get(ctx)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return ring, err
	}, placeOf(c, client))
}

// onFailure reports that no ring can sign, so that the KeyRing does not go on to show that all is well. An outage of
// the store is not such a failure: the ring may be as it was. Of a superseded ring the KeyRing is given all that is remembered: the
// API server may have been restarted since, with a KeyRing that was put back together with the ring.
func (r *reconciler) onFailure(ctx context.Context, damage error) {
	superseded := errors.Is(damage, keyring.ErrSuperseded)
	r.recorder.Damaged(damage != nil && !superseded)
	r.recorder.Superseded(superseded)
	if damage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ring, err := r.rings.get(ctx)
	if err != nil {
		return // reported when the ring is read
	}
	next := ring.DeepCopy()
	if superseded {
		if past, err := r.past(ctx); err == nil {
			report.Remember(&next.Status, past)
		}
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "RingUnusable", ObservedGeneration: ring.Generation,
		Message: "no token is signed: the stored ring of keys is damaged or gone; see the log of the key controller",
	}
	if superseded {
		condition.Reason, condition.Message = "RingSuperseded", damage.Error()
	}
	meta.SetStatusCondition(&next.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(ring.Status, next.Status) {
		return
	}
	err = r.rings.updateStatus(ctx, next)
	r.problem(ctx, "the status of the KeyRing could not be written", err)
	if err == nil {
		r.events.conditions(ring, next)
	}
}

// onEvents reports what happened to keys.
func (r *reconciler) onEvents(ctx context.Context, all []keys.Event) {
	for _, event := range all {
		r.log.InfoContext(ctx, "key "+string(event.Kind), "algorithm", event.Algorithm, "kid", event.Key,
			"by", event.By, "reason", event.Reason, "acceptRefusals", event.AcceptRefusals)
		r.recorder.Happened(event)
		if r.ring != nil {
			r.events.key(r.ring, event)
		}
	}
}

// problem logs an error when it begins or changes, and when it is over.
func (r *reconciler) problem(ctx context.Context, what string, err error) {
	if r.problems == nil {
		r.problems = map[string]string{}
	}
	switch before := r.problems[what]; {
	case err == nil && before != "":
		r.log.InfoContext(ctx, "over: "+what)
		delete(r.problems, what)
	case err != nil && before != err.Error():
		r.log.WarnContext(ctx, what, "err", err)
		r.problems[what] = err.Error()
	}
}

func texts(ids []identity.KeyID) []string {
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	slices.Sort(all)
	return all
}
