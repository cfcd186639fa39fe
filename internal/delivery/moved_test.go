package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/tokensecret"
)

// csiNamespace is one whose pods have volumes without Secrets.
func csiNamespace() *corev1.Namespace {
	namespace := enabledNamespace("ns")
	namespace.Labels[v1alpha1.LabelNamespaceDelivery] = v1alpha1.DeliveryCSI
	return namespace
}

// Where pods have volumes without Secrets none is made, whatever chose that, and none of a choice that is refused.
func TestNoSecretsForVolumes(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	labelled := func(value string) map[string]string {
		return map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled, v1alpha1.LabelNamespaceDelivery: value}
	}
	for name, c := range map[string]struct {
		byDefault string
		labels    map[string]string
		secrets   int
	}{
		"no choice":        {labels: labels, secrets: 1},
		"by default":       {byDefault: "csi", labels: labels},
		"chosen":           {labels: labelled("csi")},
		"chosen otherwise": {byDefault: "csi", labels: labelled("secret"), secrets: 1},
		"another value":    {labels: labelled("vault")},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := enabledNamespace("ns")
			namespace.Labels = c.labels
			w := newWorld(t, namespace, account("ns", "web", "banana"))
			w.accounts.Delivery = c.byDefault
			w.addIdentity("ns", "banana", "u1")
			if again := w.lookAtAccount(); again != 0 {
				t.Errorf("looked at again after %s", again)
			}
			if names := w.secretNames(); len(names) != c.secrets {
				t.Errorf("Secrets %v, want %d", names, c.secrets)
			}
		})
	}
}

// A namespace that moves to volumes keeps the Secrets of its pods until the last of them is restarted, and one that moves back has them again.
func TestMovingBetweenDeliveries(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	key := tokensecret.NameFor("web", "banana")
	w.lookAtAccount()
	w.look("ns/" + key)
	w.pods = []corev1.Pod{mountingPod("a", key)}
	if err := w.client.Update(t.Context(), csiNamespace()); err != nil {
		t.Fatal(err)
	}
	if again := w.lookAtAccount(); again != accounts.ReleasedLook {
		t.Errorf("looked at again after %s", again)
	}
	for _, words := range []string{"Normal DeliveryChanged new pods of the account have tokens of WorkloadIdentity ns/banana in volumes without Secrets; 1 pod still mounts the Secret", "this pod keeps its Secret"} {
		if event := w.event(); !strings.Contains(event, words) {
			t.Errorf("the Event is %q, want %q", event, words)
		}
	}
	w.pass(lifetime * 3 / 4)
	if w.look("ns/" + key); len(w.tokens) != 2 {
		t.Errorf("%d tokens for the pod, want 2", len(w.tokens))
	}
	w.pods = nil
	if w.lookAtAccount(); len(w.secretNames()) != 0 {
		t.Errorf("Secrets %v after the last pod", w.secretNames())
	}
	if err := w.client.Update(t.Context(), enabledNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	if w.lookAtAccount(); len(w.secretNames()) != 1 {
		t.Errorf("Secrets %v after moving back, want one", w.secretNames())
	}
}

// A pod that was admitted with a Secret before the namespace moved has it: its gate would never go otherwise.
func TestAPodAdmittedBeforeTheMoveHasItsSecret(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	pod := mountingPod("a", key)
	pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = "web", []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	w := newWorld(t, csiNamespace(), account("ns", "web", "banana,cherry"))
	w.pods = []corev1.Pod{pod}
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	w.lookAtAccount()
	if names := strings.Join(w.secretNames(), " "); names != key {
		t.Errorf("Secrets %q, want that of the pod", names)
	}
}

// A Secret that is deleted is made again for the pods that mount it: they run on nodes, and came before the move.
func TestASecretOfPodsFromBeforeTheMoveIsMadeAgain(t *testing.T) {
	w := newWorld(t, csiNamespace(), account("ns", "web", "banana,cherry"))
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	key := tokensecret.NameFor("web", "banana")
	pod := mountingPod("a", key)
	pod.Spec.NodeName = "node-1"
	w.pods = []corev1.Pod{pod}
	w.lookAtAccount()
	if names := strings.Join(w.secretNames(), " "); names != key {
		t.Fatalf("Secrets %q, want that of the pod", names)
	}
	if w.look("ns/" + key); len(w.tokens) != 1 {
		t.Errorf("%d tokens, want one", len(w.tokens))
	}
	if again := w.lookAtAccount(); again != accounts.ReleasedLook || w.secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased] == "" {
		t.Errorf("looked at again after %s, annotations %v", again, w.secret("ns/"+key).Annotations)
	}
	if w.podLists != 2 {
		t.Errorf("pods were listed %d times for two looks", w.podLists)
	}
}

// A failure to list the pods is reported, and they are listed again.
func TestPodsThatCannotBeListedAfterTheMove(t *testing.T) {
	w := newWorld(t, csiNamespace(), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.accounts.Pods = func(context.Context, types.NamespacedName) ([]corev1.Pod, error) {
		return nil, errors.New("etcd is away")
	}
	again := w.lookAtAccount()
	if event := w.event(); again <= 0 || !strings.Contains(event, "PodsUnreadable") || !strings.Contains(event, "etcd is away") {
		t.Errorf("looked at again after %s, the Event is %q", again, event)
	}
}

// New tokens that an account requests come into the Secrets of pods from before, too: those may be the ones that have leaked.
func TestRequestedTokensReachSecretsThatStay(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the namespace moves": func(w *world) {
			if err := w.client.Update(t.Context(), csiNamespace()); err != nil {
				t.Fatal(err)
			}
		},
		"the identity is taken off the account": func(w *world) {
			w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
			w.addIdentity("ns", "banana", "u1")
			key := "ns/" + tokensecret.NameFor("web", "banana")
			w.lookAtAccount()
			w.look(key)
			w.pods = []corev1.Pod{mountingPod("a", tokensecret.NameFor("web", "banana"))}
			change(w)
			w.lookAtAccount()
			w.pass(time.Minute)
			w.editAccount(func(a *corev1.ServiceAccount) {
				a.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
			})
			w.lookAtAccount()
			if _, queued := w.queued[key]; !queued || !w.requestsTokens() {
				t.Errorf("before the Secret has its token: queued %t, the annotation is there: %t", queued, w.requestsTokens())
			}
			w.look(key)
			w.lookAtAccount()
			if len(w.tokens) != 2 || w.requestsTokens() {
				t.Errorf("%d tokens, want 2; the annotation is there: %t", len(w.tokens), w.requestsTokens())
			}
		})
	}
}
