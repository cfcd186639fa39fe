package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
)

// events are the cluster's Events on the KeyRing; as it has no namespace, they are in the namespace default.
type events struct{ recorder record.EventRecorder }

// reasons of events, by what happened to a key.
var reasons = map[keys.EventKind]string{
	keys.Published: "KeyPublished", keys.Requested: "RotationRequested", keys.Activated: "KeyActivated",
	keys.Retired: "KeyRetired", keys.Removed: "KeyRemoved", keys.Revoked: "KeyRevoked",
}

func (e events) key(ring *v1alpha1.KeyRing, event keys.Event) {
	kind := corev1.EventTypeNormal
	note := ""
	if event.Kind == keys.Revoked || event.AcceptRefusals {
		kind = corev1.EventTypeWarning
	}
	if event.AcceptRefusals {
		note = ", before every relying party could know it"
	}
	e.recorder.Event(ring, kind, reasons[event.Kind], fmt.Sprintf("%s key %s was %s%s, by %s: %s",
		event.Algorithm, report.Short(string(event.Key)), told(event.Kind), note, event.By, event.Reason))
}

func told(kind keys.EventKind) string {
	if kind == keys.Requested {
		return "requested to be rotated away"
	}
	return string(kind)
}

// conditions reports each condition that has changed.
func (e events) conditions(before, after *v1alpha1.KeyRing) {
	for _, condition := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, condition.Type)
		switch {
		case condition.Status == metav1.ConditionFalse && (was == nil || was.Status != condition.Status || was.Reason != condition.Reason):
			e.recorder.Event(after, corev1.EventTypeWarning, condition.Reason, condition.Message)
		case condition.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
			e.recorder.Event(after, corev1.EventTypeNormal, condition.Reason, condition.Message)
		}
	}
}
