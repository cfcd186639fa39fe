package accounts_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

func unlabel(w *deliverytest.World) {
	w.Update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
}

// An identity that is taken off an account, or whose namespace loses its label, stays for the pods that have it.
func TestReleasedSecretsStayForTheirPods(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, take := range map[string]func(*deliverytest.World){
		"the annotation goes": func(w *deliverytest.World) {
			w.EditAccount("ns/web", func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
		},
		"the identity is taken off it": func(w *deliverytest.World) {
			nameIdentities(w, "cherry")
		},
		"the label goes": unlabel,
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount(t, "banana")
			w.AddIdentity("ns", "cherry", "u2")
			w.LookAtAccount("ns/web")
			w.Look("ns/" + key)
			w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key), deliverytest.MountingPod("b", key), deliverytest.MountingPod("c", "another")}
			take(w)
			if again := w.LookAtAccount("ns/web"); again != accounts.ReleasedLook {
				t.Errorf("looked at again after %s, want %s", again, accounts.ReleasedLook)
			}
			if since := w.Secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased]; since != "2026-01-02T03:00:00Z" {
				t.Errorf("released since %q", since)
			}
			for _, words := range []string{"IdentityReleased the account gives new pods no tokens of WorkloadIdentity ns/banana any more, but 2 pods still need them", "this pod keeps them", "this pod keeps them"} {
				if event := w.Event(); !strings.Contains(event, words) || !strings.Contains(event, "to stop delivery at once, take the right to use it away") {
					t.Errorf("the Event is %q", event)
				}
			}
			// It is renewed as before, and nothing is reported again.
			for range 3 {
				w.Pass(45 * time.Minute)
				w.Look("ns/" + key)
				w.LookAtAccount("ns/web")
			}
			if event := w.Event(); len(w.Tokens) != 4 || event != "" {
				t.Errorf("%d tokens, want 4; the Event is %q", len(w.Tokens), event)
			}
			// Without the right it is not.
			w.Denied["system:serviceaccount:ns:web"] = true
			w.Pass(45 * time.Minute)
			w.Look("ns/" + key)
			if len(w.Tokens) != 4 {
				t.Error("renewed without the right to use the identity")
			}
			w.Pods = []corev1.Pod{deliverytest.MountingPod("c", "another")}
			w.LookAtAccount("ns/web")
			if names := strings.Join(secretNames(t, w), " "); strings.Contains(names, key) {
				t.Errorf("Secrets %s after the last pod", names)
			}
		})
	}
}

// A pod may have the Secret of its account in a volume of its own.
func TestAnyVolumeKeepsAReleasedSecret(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, spec := range map[string]corev1.PodSpec{
		"projected volume": deliverytest.MountingPod("a", key).Spec,
		"plain volume":     {Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: key}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount(t, "banana")
			w.LookAtAccount("ns/web")
			w.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: spec}}
			w.EditAccount("ns/web", func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
			for range 3 {
				w.LookAtAccount("ns/web")
				w.Pass(accounts.ReleasedLook)
			}
			if names := secretNames(t, w); len(names) != 1 {
				t.Errorf("Secrets %v, want that of the pod", names)
			}
		})
	}
}

func TestIdentityNamedAgainIsNotReleased(t *testing.T) {
	w := newAccount(t, "banana")
	key := tokensecret.NameFor("web", "banana")
	w.LookAtAccount("ns/web")
	w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key)}
	nameIdentities(w, "")
	w.LookAtAccount("ns/web")
	before := w.Secret("ns/" + key)
	nameIdentities(w, "banana")
	if again := w.LookAtAccount("ns/web"); again != 0 {
		t.Errorf("looked at again after %s", again)
	}
	after := w.Secret("ns/" + key)
	if _, marked := after.Annotations[v1alpha1.AnnotationReleased]; marked || before.UID != after.UID || before.Annotations[v1alpha1.AnnotationReleased] == "" {
		t.Errorf("before %v, after %v", before.Annotations, after.Annotations)
	}
}

// A pod that is admitted while its account loses the identity shows up after the look that finds none.
func TestPodAdmittedDuringReleaseKeepsItsSecret(t *testing.T) {
	w := newAccount(t, "banana")
	key := tokensecret.NameFor("web", "banana")
	w.LookAtAccount("ns/web")
	nameIdentities(w, "")
	for range 2 { // the mark is a change, which has the account looked at again
		if again := w.LookAtAccount("ns/web"); again != accounts.ReleasedLook || w.Secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased] == "" {
			t.Errorf("without pods it is looked at again after %s, marked %v", again, w.Secret("ns/"+key).Annotations)
		}
	}
	if event := w.Event(); event != "" {
		t.Errorf("the Event is %q", event)
	}
	w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key)}
	w.Pass(accounts.ReleasedLook)
	w.LookAtAccount("ns/web")
	if w.Look("ns/" + key); secrets.Stored(w.Secret("ns/"+key)) == nil {
		t.Error("the pod gets no token")
	}
	w.Pods = nil
	w.LookAtAccount("ns/web")
	if names := secretNames(t, w); len(names) != 0 {
		t.Errorf("Secrets %v, want none", names)
	}
}

// A released Secret that is deleted is made again for the pods that mount it, and for no others.
func TestDeletedReleasedSecretIsRestored(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	cherry := tokensecret.NameFor("web", "cherry")
	for name, c := range map[string]struct {
		change func(*deliverytest.World)
		names  string
		event  string
	}{
		"pods mount it":        {names: key},
		"no pod does any more": {change: func(w *deliverytest.World) { w.Pods = nil }},
		"the right is gone":    {change: func(w *deliverytest.World) { w.Denied["system:serviceaccount:ns:web"] = true }, event: "UseDenied"},
		"the identity is gone": {change: func(w *deliverytest.World) { delete(w.Identities, "ns/banana") }, event: "IdentityMissing"},
		"another account": {change: func(w *deliverytest.World) {
			w.EditAccount("ns/web", func(a *corev1.ServiceAccount) { a.UID = "another" })
		}},
		"an identity that the account never named": {change: func(w *deliverytest.World) {
			w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key), deliverytest.MountingPod("thief", cherry)}
		}, names: key},
		"the label went, too": {change: unlabel, event: "SecretLost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount(t, "banana")
			w.AddIdentity("ns", "cherry", "u2")
			w.LookAtAccount("ns/web")
			w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key)}
			nameIdentities(w, "")
			w.LookAtAccount("ns/web")
			w.Event() // on the account
			w.Event() // on the pod
			marked := w.Secret("ns/" + key)
			testkit.Must(t, w.Client.Delete(t.Context(), marked))
			if c.change != nil {
				c.change(w)
			}
			w.Pass(time.Second)
			again := w.LookAtAccount("ns/web")
			if names := strings.Join(secretNames(t, w), " "); names != c.names {
				t.Fatalf("Secrets %q, want %q", names, c.names)
			}
			if event := w.Event(); (event == "") != (c.event == "") || !strings.Contains(event, c.event) {
				t.Errorf("the Event is %q, want one of %q", event, c.event)
			}
			if c.names == "" {
				return
			}
			made := w.Secret("ns/" + key)
			if since := made.Annotations[v1alpha1.AnnotationReleased]; again != accounts.ReleasedLook || since != marked.Annotations[v1alpha1.AnnotationReleased] {
				t.Errorf("looked at again after %s, released since %q", again, since)
			}
			if w.Look("ns/" + key); secrets.Stored(w.Secret("ns/"+key)) == nil {
				t.Error("the pods get no token")
			}
			w.Pods = nil
			w.Pass(accounts.ReleasedLook)
			w.LookAtAccount("ns/web")
			w.LookAtAccount("ns/web")
			if names := secretNames(t, w); len(names) != 0 || w.Event() != "" {
				t.Errorf("Secrets %v after the last pod, want none and no Event", names)
			}
		})
	}
}
