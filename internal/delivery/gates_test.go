package delivery

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

func TestGates(t *testing.T) {
	first, second := tokensecret.NameFor("web", "banana"), tokensecret.NameFor("web", "cherry")
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name[len(name)-10:], VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
		}}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "other.example/gate"}, {Name: v1alpha1.GateToken}},
			Volumes:         []corev1.Volume{volume(first), volume(second)},
		},
	}
	w := newWorld(t, pod, labelled("ns", first, "banana"), labelled("ns", second, "cherry"))
	gates := func() int {
		t.Helper()
		key := types.NamespacedName{Namespace: "ns", Name: "p"}
		if _, err := w.gates.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		var found corev1.Pod
		if err := w.client.Get(t.Context(), key, &found); err != nil {
			t.Fatal(err)
		}
		return len(found.Spec.SchedulingGates)
	}
	w.edit("ns/"+first, func(s *corev1.Secret) { s.Data["token"] = []byte("t") })
	if n := gates(); n != 2 {
		t.Errorf("%d gates while one token is missing, want both", n)
	}
	w.edit("ns/"+second, func(s *corev1.Secret) { s.Data["token"] = []byte("t") })
	if n := gates(); n != 1 {
		t.Errorf("%d gates once the tokens exist, want that of the other", n)
	}
	if n := gates(); n != 1 {
		t.Errorf("%d gates after another look", n)
	}
}

// A pod that waits for longer than a moment has an Event that says what for.
func TestAPodThatWaitsIsToldWhy(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	pod := mountingPod("p", secret)
	pod.CreationTimestamp = metav1.NewTime(start0)
	pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = "web", []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	w := newWorld(t, &pod, enabledNamespace("ns"), account("ns", "web", "banana"))
	look := func() time.Duration {
		result, err := w.gates.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	w.lookAtAccount()
	w.event() // on the account
	if after := look(); after != untold || w.event() != "" {
		t.Errorf("looked at again after %s, want %s and no Event yet", after, untold)
	}
	w.pass(untold)
	if after := look(); after != again {
		t.Errorf("looked at again after %s, want %s", after, again)
	}
	if event := w.event(); !strings.Contains(event, "WaitingForToken") || !strings.Contains(event, secret+" does not exist yet: IdentityMissing: WorkloadIdentity ns/banana does not exist") {
		t.Errorf("the Event says %q", event)
	}
	w.addIdentity("ns", "banana", "u1")
	w.lookAtAccount()
	w.down = tooMany(0)
	w.look("ns/" + secret)
	w.event() // on the Secret
	look()
	if event := w.event(); !strings.Contains(event, "has no token yet: the identity cluster takes no more requests") {
		t.Errorf("the Event says %q", event)
	}
}
