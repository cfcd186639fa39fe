package gates_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/gates"
	"github.com/credence-id/credence/internal/tokensecret"
)

// gatedPod is the pod ns/p of the account web, which mounts Secrets.
func gatedPod(secrets ...string) *corev1.Pod {
	pod := deliverytest.MountingPod("p", secrets...)
	pod.UID, pod.CreationTimestamp, pod.Spec.ServiceAccountName = "u", metav1.NewTime(deliverytest.Start), "web"
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	return &pod
}

func TestGateGoesWhenAllTokensExist(t *testing.T) {
	first, second := tokensecret.NameFor("web", "banana"), tokensecret.NameFor("web", "cherry")
	pod := gatedPod(first, second)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other.example/gate"}, {Name: v1alpha1.GateToken}}
	w := deliverytest.New(t, pod, deliverytest.LabeledSecret("ns", first, "banana"), deliverytest.LabeledSecret("ns", second, "cherry"))
	gates := func() int {
		t.Helper()
		w.Reconcile(w.Gates, "ns/p")
		return len(w.Pod("ns/p").Spec.SchedulingGates)
	}
	w.Edit("ns/"+first, func(s *corev1.Secret) { s.Data["token"] = []byte("t") })
	if n := gates(); n != 2 {
		t.Errorf("%d gates while one token is missing, want both", n)
	}
	w.Edit("ns/"+second, func(s *corev1.Secret) { s.Data["token"] = []byte("t") })
	if n := gates(); n != 1 {
		t.Errorf("%d gates once the tokens exist, want that of the other", n)
	}
	if n := gates(); n != 1 {
		t.Errorf("%d gates after another look", n)
	}
}

// A pod that waits for longer than a moment has an Event and a condition with the reason.
func TestWaitingPodIsReported(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	pod := gatedPod(secret)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	w := deliverytest.New(t, pod, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana"))
	look := func() time.Duration { return w.Reconcile(w.Gates, "ns/p") }
	w.LookAtAccount("ns/web")
	w.Event() // on the account
	if after := look(); after != gates.Untold || w.Event() != "" {
		t.Errorf("looked at again after %s, want %s and no Event yet", after, gates.Untold)
	}
	w.Pass(gates.Untold)
	if after := look(); after != gates.WaitLook {
		t.Errorf("looked at again after %s, want %s", after, gates.WaitLook)
	}
	if event := w.Event(); !strings.Contains(event, "WaitingForToken") || !strings.Contains(event, secret+" does not exist yet: IdentityMissing: WorkloadIdentity ns/banana does not exist") {
		t.Errorf("the Event is %q", event)
	}
	writes := 0
	w.OnStatus = func() error { writes++; return nil }
	condition := func(status corev1.ConditionStatus, reason, words string, changed time.Time) {
		t.Helper()
		found := w.Pod("ns/p")
		has := gates.Waiting(found)
		if has == nil || len(found.Status.Conditions) != 2 || has.Status != status || has.Reason != reason || !strings.Contains(has.Message, words) || !has.LastTransitionTime.Time.Equal(changed) {
			t.Errorf("the conditions are %+v, want %s since %s, %s, %q", found.Status.Conditions, status, changed, reason, words)
		}
	}
	condition(corev1.ConditionFalse, "SecretMissing", "WorkloadIdentity ns/banana does not exist", deliverytest.Start.Add(gates.Untold))
	for range 9 {
		w.Pass(gates.WaitLook)
		look()
	}
	if event := w.Event(); event != "" || writes != 0 {
		t.Errorf("%d writes and the Event %q while nothing has changed", writes, event)
	}
	w.Pass(gates.WaitLook)
	look()
	if event := w.Event(); event == "" || writes != 1 {
		t.Errorf("%d writes and the Event %q after ten minutes, want one of each", writes, event)
	}
	w.AddIdentity("ns", "banana", "u1")
	w.LookAtAccount("ns/web")
	w.Down = apierrors.NewTooManyRequests("refused by a webhook", 0)
	w.Look("ns/" + secret)
	w.Event() // on the Secret
	look()
	if event := w.Event(); event != "" || writes != 1 {
		t.Errorf("%d writes and the Event %q within a minute", writes, event)
	}
	w.Pass(gates.WaitLook)
	look()
	if event := w.Event(); !strings.Contains(event, "has no token yet: the identity cluster takes no more requests") {
		t.Errorf("the Event is %q", event)
	}
	condition(corev1.ConditionFalse, "TokenMissing", "the identity cluster takes no more requests", deliverytest.Start.Add(gates.Untold))
	w.Edit("ns/"+secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("t")} })
	look()
	condition(corev1.ConditionTrue, "TokensExist", "the tokens of the pod exist", w.Clock.Now())
	look()
	if writes != 3 {
		t.Errorf("%d writes, want 0 once the gate has gone", writes)
	}
}

// A Secret that the account does not name any more is never made: the pod has that as the reason, whatever else the account lacks.
func TestReleasedIdentityIsTheReason(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	for annotation, c := range map[string]struct{ words, not string }{
		"":              {words: "does not exist yet: service account ns/web does not name the identity of this Secret any more: create the pod anew, or name the identity again"},
		"cherry":        {words: "does not name the identity of this Secret any more", not: "ns/cherry"},
		"cherry,banana": {words: "WorkloadIdentity ns/banana does not exist", not: "any more"},
		"cherry,,":      {words: "has an empty name", not: "any more"},
	} {
		t.Run(annotation, func(t *testing.T) {
			pod := gatedPod(secret)
			w := deliverytest.New(t, pod, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", annotation))
			w.LookAtAccount("ns/web")
			w.Events() // on the account
			w.Pass(gates.Untold)
			w.Reconcile(w.Gates, "ns/p")
			if event := w.Event(); !strings.Contains(event, c.words) || c.not != "" && strings.Contains(event, c.not) {
				t.Errorf("the Event is %q, want %q and not %q", event, c.words, c.not)
			}
		})
	}
}

func TestGateGoesWithoutItsCondition(t *testing.T) {
	secret := tokensecret.NameFor("web", "banana")
	pod := gatedPod(secret)
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.ConditionTokenReady, Status: corev1.ConditionFalse}}
	w := deliverytest.New(t, pod, deliverytest.LabeledSecret("ns", secret, "banana"))
	w.Edit("ns/"+secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("t")} })
	broken := errors.New("a webhook for pods/status is broken")
	w.OnStatus = func() error { return broken }
	if _, err := w.Gates.Reconcile(t.Context(), reconcile.Request{NamespacedName: deliverytest.Key("ns/p")}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if left := w.Pod("ns/p").Spec.SchedulingGates; len(left) != 0 {
		t.Errorf("the pod waits behind %v", left)
	}
}
