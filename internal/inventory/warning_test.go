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
	for _, c := range []struct {
		reason, message string
		only, want      bool
	}{
		{"UseDenied", "service account team/web may not use the WorkloadIdentity team/store, so it gets no tokens", false, true},
		{"UseDenied", "service account team/web may not use the WorkloadIdentity team/archive, so it gets no tokens", true, false},
		{"SecretNotDeleted", "delete Secret credence-token-web-archive-0123456789, which is not needed any more: forbidden", true, false},
		{"InvalidAnnotation", "the annotation names \"a\" twice", true, true},
		{"InvalidAnnotation", "the annotation names \"a\" twice", false, false},
		{"NamespaceNotBound", "the agent may not read Secrets of the namespace team", true, true},
		{"IdentityReleased", "the account gives new pods no tokens of WorkloadIdentity team/archive any more", true, false},
		{"IdentityReleased", "the account gives new pods no tokens of WorkloadIdentity team/store any more", true, false},
	} {
		event := &corev1.Event{Reason: c.reason, Message: c.message}
		if got := FailsIdentity(event, store, secret, c.only); got != c.want {
			t.Errorf("%s %q is a failure of the identity, the only one %t: %v, want %v", c.reason, c.message, c.only, got, c.want)
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
