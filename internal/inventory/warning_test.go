package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Event is shown beside what it is about alone.
func TestWhatEventsAreAbout(t *testing.T) {
	store := types.NamespacedName{Namespace: "team", Name: "store"}
	const secret = "credence-token-web-store-0123456789"
	for message, want := range map[string]bool{
		"the agent may not get tokens of WorkloadIdentity team/store: forbidden":      true,
		"WorkloadIdentity team/store does not exist: create it":                       true,
		"it can't be read: WorkloadIdentity team/store.":                              true,
		"create Secret credence-token-web-store-0123456789: exceeded quota":           true,
		"WorkloadIdentity team/store-2 does not exist":                                false,
		"WorkloadIdentity team/store.eu does not exist":                               false,
		"service account team/store may not use the WorkloadIdentity team/archive":    false,
		"create Secret credence-token-web-store-01234567890: exceeded quota":          false,
		"WorkloadIdentity team/store-2 is not there, but WorkloadIdentity team/store": true,
	} {
		if got := ConcernsIdentity(&corev1.Event{Message: message}, store, secret); got != want {
			t.Errorf("%q concerns the identity: %v, want %v", message, got, want)
		}
	}
	on := func(message string) *Warning {
		return Newer(nil, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "WorkloadIdentity"}, Message: message})
	}
	d := &Delivery{Namespace: "team", Secret: "backup"}
	for message, want := range map[string]bool{
		"Secret team/backup: refused":   true,
		"Secret team/backup-2: refused": false,
		"Secret other/backup: refused":  false,
		"a failure of another kind":     true,
	} {
		identity := &Identity{LastFailure: on(message)}
		if got := d.Failure(identity) != nil; got != want {
			t.Errorf("%q is shown beside Secret team/backup: %v, want %v", message, got, want)
		}
	}
}
