package report

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// conditions are Ready, Rotating and Withdrawn. Where something is wrong, their reasons are the types of the plan's conditions.
func conditions(o Observation) []metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Signing", Message: "a key of each algorithm signs"}
	rotating := metav1.Condition{Type: v1alpha1.ConditionRotating, Status: metav1.ConditionTrue, Reason: "OnTime", Message: "no rotation is overdue"}
	withdrawn := metav1.Condition{Type: v1alpha1.ConditionWithdrawn, Status: metav1.ConditionTrue, Reason: "NotPublished", Message: "no revoked key is in the published documents"}
	var signless, held, exposed []keys.Condition
	for _, condition := range o.Plan.Conditions {
		switch condition.Type {
		case keys.NoSigningKey:
			signless = append(signless, condition)
		case keys.RevokedKeyPublished, keys.DocumentsUnread:
			exposed = append(exposed, condition)
		default:
			held = append(held, condition)
		}
	}
	describe(&ready, signless)
	describe(&rotating, held)
	describe(&withdrawn, exposed)
	if withdrawn.Reason == string(keys.DocumentsUnread) {
		withdrawn.Status = metav1.ConditionUnknown
	}
	all := append([]metav1.Condition{}, o.Before...)
	for _, condition := range []metav1.Condition{ready, rotating, withdrawn} {
		condition.ObservedGeneration = o.Generation
		condition.LastTransitionTime = metav1.NewTime(o.View.Now)
		meta.SetStatusCondition(&all, condition)
	}
	return all
}

// describe makes a condition False for what is wrong, with the reason of the first.
func describe(condition *metav1.Condition, wrong []keys.Condition) {
	if len(wrong) == 0 {
		return
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, string(wrong[0].Type)
	var messages []string
	for _, w := range wrong {
		message := w.Message
		if w.Algorithm != "" {
			message = string(w.Algorithm) + ": " + message
		}
		messages = append(messages, message)
	}
	condition.Message = strings.Join(messages, "; ")
}
