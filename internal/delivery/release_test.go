package delivery

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
)

func mountingPod(name, secret string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}}}}},
	}}
}

// An identity that is taken off an account, or whose namespace loses its label, stays for the pods that have it.
func TestReleasedIdentitiesServeTheirPods(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, take := range map[string]func(*world){
		"the annotation goes": func(w *world) {
			w.editAccount(func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
		},
		"the identity is taken off it": func(w *world) {
			w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "cherry" })
		},
		"the label goes": func(w *world) {
			namespace := &corev1.Namespace{}
			if err := w.client.Get(t.Context(), types.NamespacedName{Name: "ns"}, namespace); err != nil {
				t.Fatal(err)
			}
			namespace.Labels = nil
			if err := w.client.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
			w.addIdentity("ns", "banana", "u1")
			w.addIdentity("ns", "cherry", "u2")
			w.lookAtAccount()
			w.look("ns/" + key)
			w.pods = []corev1.Pod{mountingPod("a", key), mountingPod("b", key), mountingPod("c", "another")}
			take(w)
			if again := w.lookAtAccount(); again != accounts.ReleasedLook {
				t.Errorf("looked at again after %s, want %s", again, accounts.ReleasedLook)
			}
			if since := w.secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased]; since != "2026-01-02T03:00:00Z" {
				t.Errorf("released since %q", since)
			}
			for _, words := range []string{"IdentityReleased the account gives new pods no tokens of WorkloadIdentity ns/banana any more, but 2 pods still need them", "this pod keeps them", "this pod keeps them"} {
				if event := w.event(); !strings.Contains(event, words) || !strings.Contains(event, "to stop delivery at once, take the right to use it away") {
					t.Errorf("the Event is %q", event)
				}
			}
			// It is renewed as before, and nothing is reported again.
			for range 3 {
				w.pass(45 * time.Minute)
				w.look("ns/" + key)
				w.lookAtAccount()
			}
			if event := w.event(); len(w.tokens) != 4 || event != "" {
				t.Errorf("%d tokens, want 4; the Event is %q", len(w.tokens), event)
			}
			// Without the right it is not.
			w.denied["system:serviceaccount:ns:web"] = true
			w.pass(45 * time.Minute)
			w.look("ns/" + key)
			if len(w.tokens) != 4 {
				t.Error("renewed without the right to use the identity")
			}
			w.pods = []corev1.Pod{mountingPod("c", "another")}
			w.lookAtAccount()
			if names := strings.Join(w.secretNames(), " "); strings.Contains(names, key) {
				t.Errorf("Secrets %s after the last pod", names)
			}
		})
	}
}

// A pod may have the Secret of its account in a volume of its own.
func TestEachVolumeOfASecretKeepsIt(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, spec := range map[string]corev1.PodSpec{
		"projected volume": mountingPod("a", key).Spec,
		"plain volume":     {Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: key}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
			w.addIdentity("ns", "banana", "u1")
			w.lookAtAccount()
			w.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: spec}}
			w.editAccount(func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
			for range 3 {
				w.lookAtAccount()
				w.pass(accounts.ReleasedLook)
			}
			if names := w.secretNames(); len(names) != 1 {
				t.Errorf("Secrets %v, want that of the pod", names)
			}
		})
	}
}

func TestAnIdentityThatComesBackIsNotReleased(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	key := tokensecret.NameFor("web", "banana")
	w.lookAtAccount()
	w.pods = []corev1.Pod{mountingPod("a", key)}
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "" })
	w.lookAtAccount()
	before := w.secret("ns/" + key)
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "banana" })
	if again := w.lookAtAccount(); again != 0 {
		t.Errorf("looked at again after %s", again)
	}
	after := w.secret("ns/" + key)
	if _, marked := after.Annotations[v1alpha1.AnnotationReleased]; marked || before.UID != after.UID || before.Annotations[v1alpha1.AnnotationReleased] == "" {
		t.Errorf("before %v, after %v", before.Annotations, after.Annotations)
	}
}

// A pod that is admitted while its account loses the identity shows up after the look that finds none.
func TestAPodThatIsAdmittedMeanwhileKeepsItsSecret(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	key := tokensecret.NameFor("web", "banana")
	w.lookAtAccount()
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "" })
	for range 2 { // the mark is a change, which has the account looked at again
		if again := w.lookAtAccount(); again != accounts.ReleasedLook || w.secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased] == "" {
			t.Errorf("without pods it is looked at again after %s, marked %v", again, w.secret("ns/"+key).Annotations)
		}
	}
	if event := w.event(); event != "" {
		t.Errorf("the Event is %q", event)
	}
	w.pods = []corev1.Pod{mountingPod("a", key)}
	w.pass(accounts.ReleasedLook)
	w.lookAtAccount()
	if w.look("ns/" + key); secrets.Stored(w.secret("ns/"+key)) == nil {
		t.Error("the pod gets no token")
	}
	w.pods = nil
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 0 {
		t.Errorf("Secrets %v, want none", names)
	}
}

// A released Secret that is deleted is made again for the pods that mount it, and for no others.
func TestAReleasedSecretIsMadeAgain(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	cherry := tokensecret.NameFor("web", "cherry")
	for name, c := range map[string]struct {
		change func(*world)
		names  string
		event  string
	}{
		"pods mount it":                            {names: key},
		"no pod does any more":                     {change: func(w *world) { w.pods = nil }},
		"the right is gone":                        {change: func(w *world) { w.denied["system:serviceaccount:ns:web"] = true }, event: "UseDenied"},
		"the identity is gone":                     {change: func(w *world) { delete(w.identities, "ns/banana") }, event: "IdentityMissing"},
		"another account":                          {change: func(w *world) { w.editAccount(func(a *corev1.ServiceAccount) { a.UID = "another" }) }},
		"an identity that the account never named": {change: func(w *world) { w.pods = []corev1.Pod{mountingPod("a", key), mountingPod("thief", cherry)} }, names: key},
		"the label went, too": {change: func(w *world) {
			namespace := enabledNamespace("ns")
			namespace.Labels = nil
			if err := w.client.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		}, event: "SecretLost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
			w.addIdentity("ns", "banana", "u1")
			w.addIdentity("ns", "cherry", "u2")
			w.lookAtAccount()
			w.pods = []corev1.Pod{mountingPod("a", key)}
			w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "" })
			w.lookAtAccount()
			w.event() // on the account
			w.event() // on the pod
			marked := w.secret("ns/" + key)
			if err := w.client.Delete(t.Context(), marked); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(w)
			}
			w.pass(time.Second)
			again := w.lookAtAccount()
			if names := strings.Join(w.secretNames(), " "); names != c.names {
				t.Fatalf("Secrets %q, want %q", names, c.names)
			}
			if event := w.event(); (event == "") != (c.event == "") || !strings.Contains(event, c.event) {
				t.Errorf("the Event is %q, want one of %q", event, c.event)
			}
			if c.names == "" {
				return
			}
			made := w.secret("ns/" + key)
			if since := made.Annotations[v1alpha1.AnnotationReleased]; again != accounts.ReleasedLook || since != marked.Annotations[v1alpha1.AnnotationReleased] {
				t.Errorf("looked at again after %s, released since %q", again, since)
			}
			if w.look("ns/" + key); secrets.Stored(w.secret("ns/"+key)) == nil {
				t.Error("the pods get no token")
			}
			w.pods = nil
			w.pass(accounts.ReleasedLook)
			w.lookAtAccount()
			w.lookAtAccount()
			if names := w.secretNames(); len(names) != 0 || w.event() != "" {
				t.Errorf("Secrets %v after the last pod, want none and no Event", names)
			}
		})
	}
}
