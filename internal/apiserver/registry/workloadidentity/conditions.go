package workloadidentity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// settle puts the conditions and entries of an identity right. A token that has expired since the last report is not delivered any more, whether
// or not a report has come. Slices are replaced, never changed: the object may share them with a cache.
func settle(wi *v1alpha1.WorkloadIdentity, now time.Time) {
	conditions := slices.Clone(wi.Status.Conditions)
	for _, condition := range []metav1.Condition{ready(wi, now), delivered(wi, now)} {
		if meta.FindStatusCondition(conditions, condition.Type) == nil {
			condition.LastTransitionTime = wi.CreationTimestamp
		}
		meta.SetStatusCondition(&conditions, condition)
	}
	wi.Status.Conditions = conditions
	wi.Status.Deliveries = standing(wi, now)
}

// delivered is the condition Delivered.
func delivered(wi *v1alpha1.WorkloadIdentity, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionUnknown, Reason: "NotReported", Message: "no agent has reported a Secret for tokens of this identity",
		ObservedGeneration: wi.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	d := sum(wi, now)
	if d.Secrets == 0 {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, "Delivered"
	condition.Message = fmt.Sprintf("%d of %d Secrets have a token", d.Delivered, d.Secrets)
	switch {
	case d.Delivered < d.Secrets:
		condition.Status, condition.Reason = metav1.ConditionFalse, "TokenMissing"
	case d.Expires != nil && !now.Before(d.Expires.Time):
		condition.Status, condition.Reason, condition.LastTransitionTime = metav1.ConditionFalse, "TokenExpired", *d.Expires
		condition.Message = fmt.Sprintf("a token has expired at %s, and no other was reported", d.Expires.UTC().Format(time.RFC3339))
	}
	return condition
}

// ready is the condition Ready.
func ready(wi *v1alpha1.WorkloadIdentity, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Issuable", Message: "tokens can be issued, and no delivery is known to fail",
		ObservedGeneration: wi.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	no := func(reason, message string) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, message
	}
	switch d, tokens := sum(wi, now), delivered(wi, now); {
	case Held(wi):
		no("Deleting", "the identity is being deleted: tokens are issued by its CredentialsBindings alone")
	case wi.DeletionTimestamp != nil:
		no("Deleting", "the identity is being deleted: no tokens are issued")
	case d.Failure != nil:
		no(d.Failure.Reason, d.Failure.Message)
	case tokens.Status == metav1.ConditionFalse:
		no(tokens.Reason, tokens.Message)
		condition.LastTransitionTime = tokens.LastTransitionTime
	}
	return condition
}

// forgotten is how long after the expiry of its tokens a report counts: an agent that runs reports that they have expired.
const forgotten = 24 * time.Hour

func gone(d v1alpha1.Delivery, now time.Time) bool {
	return d.Expires != nil && now.Sub(d.Expires.Time) > forgotten
}

// sum is all reports as one: the failure is the first of them.
func sum(wi *v1alpha1.WorkloadIdentity, now time.Time) v1alpha1.DeliveryReportSpec {
	var all v1alpha1.DeliveryReportSpec
	for _, d := range wi.Status.Deliveries {
		if gone(d, now) {
			continue
		}
		all.Secrets += d.Secrets
		all.Delivered += d.Delivered
		if d.Expires != nil && (all.Expires == nil || d.Expires.Before(all.Expires)) {
			all.Expires = d.Expires
		}
		all.Failure = cmp.Or(all.Failure, d.Failure)
	}
	return all
}
