package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/gates"
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

// A pod that waits for longer than a moment has an Event and a condition with the reason.
func TestAPodThatWaitsIsToldWhy(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	pod := mountingPod("p", secret)
	pod.UID, pod.CreationTimestamp = "u", metav1.NewTime(start0)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
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
	if after := look(); after != gates.Untold || w.event() != "" {
		t.Errorf("looked at again after %s, want %s and no Event yet", after, gates.Untold)
	}
	w.pass(gates.Untold)
	if after := look(); after != gates.WaitLook {
		t.Errorf("looked at again after %s, want %s", after, gates.WaitLook)
	}
	if event := w.event(); !strings.Contains(event, "WaitingForToken") || !strings.Contains(event, secret+" does not exist yet: IdentityMissing: WorkloadIdentity ns/banana does not exist") {
		t.Errorf("the Event is %q", event)
	}
	writes := 0
	w.onStatus = func() error { writes++; return nil }
	condition := func(status corev1.ConditionStatus, reason, words string, changed time.Time) {
		t.Helper()
		var found corev1.Pod
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &found); err != nil {
			t.Fatal(err)
		}
		has := gates.Waiting(&found)
		if has == nil || len(found.Status.Conditions) != 2 || has.Status != status || has.Reason != reason || !strings.Contains(has.Message, words) || !has.LastTransitionTime.Time.Equal(changed) {
			t.Errorf("the conditions are %+v, want %s since %s, %s, %q", found.Status.Conditions, status, changed, reason, words)
		}
	}
	condition(corev1.ConditionFalse, "SecretMissing", "WorkloadIdentity ns/banana does not exist", start0.Add(gates.Untold))
	for range 9 {
		w.pass(gates.WaitLook)
		look()
	}
	if event := w.event(); event != "" || writes != 0 {
		t.Errorf("%d writes and the Event %q while nothing has changed", writes, event)
	}
	w.pass(gates.WaitLook)
	look()
	if event := w.event(); event == "" || writes != 1 {
		t.Errorf("%d writes and the Event %q after ten minutes, want one of each", writes, event)
	}
	w.addIdentity("ns", "banana", "u1")
	w.lookAtAccount()
	w.down = tooMany(0)
	w.look("ns/" + secret)
	w.event() // on the Secret
	look()
	if event := w.event(); event != "" || writes != 1 {
		t.Errorf("%d writes and the Event %q within a minute", writes, event)
	}
	w.pass(gates.WaitLook)
	look()
	if event := w.event(); !strings.Contains(event, "has no token yet: the identity cluster takes no more requests") {
		t.Errorf("the Event is %q", event)
	}
	condition(corev1.ConditionFalse, "TokenMissing", "the identity cluster takes no more requests", start0.Add(gates.Untold))
	w.edit("ns/"+secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("t")} })
	look()
	condition(corev1.ConditionTrue, "TokensExist", "the tokens of the pod exist", w.clock.Now())
	look()
	if writes != 3 {
		t.Errorf("%d writes, want 0 once the gate has gone", writes)
	}
}

// A Secret that the account does not name any more is never made: the pod has that as the reason, whatever else the account lacks.
func TestWhyAPodOfAReleasedIdentityWaits(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	for annotation, c := range map[string]struct{ words, not string }{
		"":              {words: "does not exist yet: service account ns/web does not name the identity of this Secret any more: create the pod anew, or name the identity again"},
		"cherry":        {words: "does not name the identity of this Secret any more", not: "ns/cherry"},
		"cherry,banana": {words: "WorkloadIdentity ns/banana does not exist", not: "any more"},
		"cherry,,":      {words: "has an empty name", not: "any more"},
	} {
		t.Run(annotation, func(t *testing.T) {
			pod := mountingPod("p", secret)
			pod.UID, pod.CreationTimestamp = "u", metav1.NewTime(start0)
			pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = "web", []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
			w := newWorld(t, &pod, enabledNamespace("ns"), account("ns", "web", annotation))
			w.lookAtAccount()
			for w.event() != "" {
				continue // on the account
			}
			w.pass(gates.Untold)
			if _, err := w.gates.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}}); err != nil {
				t.Fatal(err)
			}
			if event := w.event(); !strings.Contains(event, c.words) || c.not != "" && strings.Contains(event, c.not) {
				t.Errorf("the Event is %q, want %q and not %q", event, c.words, c.not)
			}
		})
	}
}

func TestAPodDoesNotWaitForItsCondition(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	pod := mountingPod("p", secret)
	pod.UID = "u"
	pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = "web", []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.ConditionTokenReady, Status: corev1.ConditionFalse}}
	w := newWorld(t, &pod, labelled("ns", secret, "banana"))
	w.edit("ns/"+secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("t")} })
	broken := errors.New("a webhook for pods/status is broken")
	w.onStatus = func() error { return broken }
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	if _, err := w.gates.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	var found corev1.Pod
	if err := w.client.Get(t.Context(), key, &found); err != nil || len(found.Spec.SchedulingGates) != 0 {
		t.Errorf("the pod waits behind %v, %v", found.Spec.SchedulingGates, err)
	}
}
