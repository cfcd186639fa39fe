package accounts_test

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
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/tokensecret"
)

// csiNamespace is one whose pods have volumes without Secrets.
func csiNamespace() *corev1.Namespace {
	namespace := deliverytest.EnabledNamespace("ns")
	namespace.Labels[v1alpha1.LabelNamespaceDelivery] = v1alpha1.DeliveryCSI
	return namespace
}

// Where pods have volumes without Secrets none is made, whatever chose that, and none of a choice that is refused.
func TestNoSecretsForVolumes(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	delivery := func(value string) map[string]string {
		return map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled, v1alpha1.LabelNamespaceDelivery: value}
	}
	for name, c := range map[string]struct {
		byDefault string
		labels    map[string]string
		secrets   int
	}{
		"no choice":        {labels: labels, secrets: 1},
		"by default":       {byDefault: "csi", labels: labels},
		"chosen":           {labels: delivery("csi")},
		"chosen otherwise": {byDefault: "csi", labels: delivery("secret"), secrets: 1},
		"another value":    {labels: delivery("vault")},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := deliverytest.EnabledNamespace("ns")
			namespace.Labels = c.labels
			w := deliverytest.New(t, namespace, deliverytest.Account("ns", "web", "banana"))
			w.Accounts.Delivery = c.byDefault
			w.AddIdentity("ns", "banana", "u1")
			if again := w.LookAtAccount("ns/web"); again != 0 {
				t.Errorf("looked at again after %s", again)
			}
			if names := secretNames(t, w); len(names) != c.secrets {
				t.Errorf("Secrets %v, want %d", names, c.secrets)
			}
		})
	}
}

// A namespace that moves to volumes keeps the Secrets of its pods until the last of them is restarted, and one that moves back has them again.
func TestNamespaceMovesBetweenDeliveries(t *testing.T) {
	w := newAccount(t, "banana")
	key := tokensecret.NameFor("web", "banana")
	w.LookAtAccount("ns/web")
	w.Look("ns/" + key)
	w.Pods = []corev1.Pod{deliverytest.MountingPod("a", key)}
	w.Update(csiNamespace())
	if again := w.LookAtAccount("ns/web"); again != accounts.ReleasedLook {
		t.Errorf("looked at again after %s", again)
	}
	for _, words := range []string{"Normal DeliveryChanged new pods of the account have tokens of WorkloadIdentity ns/banana in volumes without Secrets; 1 pod still mounts the Secret", "this pod keeps its Secret"} {
		if event := w.Event(); !strings.Contains(event, words) {
			t.Errorf("the Event is %q, want %q", event, words)
		}
	}
	w.Pass(deliverytest.Lifetime * 3 / 4)
	if w.Look("ns/" + key); len(w.Tokens) != 2 {
		t.Errorf("%d tokens for the pod, want 2", len(w.Tokens))
	}
	w.Pods = nil
	if w.LookAtAccount("ns/web"); len(secretNames(t, w)) != 0 {
		t.Errorf("Secrets %v after the last pod", secretNames(t, w))
	}
	w.Update(deliverytest.EnabledNamespace("ns"))
	if w.LookAtAccount("ns/web"); len(secretNames(t, w)) != 1 {
		t.Errorf("Secrets %v after moving back, want one", secretNames(t, w))
	}
}

// A pod that was admitted with a Secret before the namespace moved has it: its gate would never go otherwise.
func TestPodAdmittedBeforeTheMoveGetsItsSecret(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	pod := deliverytest.MountingPod("a", key)
	pod.Spec.ServiceAccountName, pod.Spec.SchedulingGates = "web", []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	w := deliverytest.New(t, csiNamespace(), deliverytest.Account("ns", "web", "banana,cherry"))
	w.Pods = []corev1.Pod{pod}
	w.AddIdentity("ns", "banana", "u1")
	w.AddIdentity("ns", "cherry", "u2")
	w.LookAtAccount("ns/web")
	if names := strings.Join(secretNames(t, w), " "); names != key {
		t.Errorf("Secrets %q, want that of the pod", names)
	}
}

// A Secret that is deleted is made again for the pods that mount it: they run on nodes, and came before the move.
func TestDeletedSecretOfEarlierPodsIsRestored(t *testing.T) {
	w := deliverytest.New(t, csiNamespace(), deliverytest.Account("ns", "web", "banana,cherry"))
	w.AddIdentity("ns", "banana", "u1")
	w.AddIdentity("ns", "cherry", "u2")
	key := tokensecret.NameFor("web", "banana")
	pod := deliverytest.MountingPod("a", key)
	pod.Spec.NodeName = "node-1"
	w.Pods = []corev1.Pod{pod}
	w.LookAtAccount("ns/web")
	if names := strings.Join(secretNames(t, w), " "); names != key {
		t.Fatalf("Secrets %q, want that of the pod", names)
	}
	if w.Look("ns/" + key); len(w.Tokens) != 1 {
		t.Errorf("%d tokens, want one", len(w.Tokens))
	}
	if again := w.LookAtAccount("ns/web"); again != accounts.ReleasedLook || w.Secret("ns/" + key).Annotations[v1alpha1.AnnotationReleased] == "" {
		t.Errorf("looked at again after %s, annotations %v", again, w.Secret("ns/"+key).Annotations)
	}
	if w.PodLists != 2 {
		t.Errorf("pods were listed %d times for two looks", w.PodLists)
	}
}

// A failure to list the pods is reported, and they are listed again.
func TestFailedListOfPodsIsReported(t *testing.T) {
	w := deliverytest.New(t, csiNamespace(), deliverytest.Account("ns", "web", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Accounts.Pods = func(context.Context, types.NamespacedName) ([]corev1.Pod, error) {
		return nil, errors.New("etcd is away")
	}
	again := w.LookAtAccount("ns/web")
	if event := w.Event(); again <= 0 || !strings.Contains(event, "PodsUnreadable") || !strings.Contains(event, "etcd is away") {
		t.Errorf("looked at again after %s, the Event is %q", again, event)
	}
}

// New tokens that an account requests come into the Secrets of pods from before, too: those may be the ones that have leaked.
func TestRequestedTokensReachReleasedSecrets(t *testing.T) {
	for name, change := range map[string]func(*deliverytest.World){
		"the namespace moves": func(w *deliverytest.World) {
			w.Update(csiNamespace())
		},
		"the identity is taken off the account": func(w *deliverytest.World) {
			nameIdentities(w, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount(t, "banana")
			key := "ns/" + tokensecret.NameFor("web", "banana")
			w.LookAtAccount("ns/web")
			w.Look(key)
			w.Pods = []corev1.Pod{deliverytest.MountingPod("a", tokensecret.NameFor("web", "banana"))}
			change(w)
			w.LookAtAccount("ns/web")
			w.Pass(time.Minute)
			requestTokens(w)
			w.LookAtAccount("ns/web")
			if _, queued := w.Queued[key]; !queued || !requestsTokens(w) {
				t.Errorf("before the Secret has its token: queued %t, the annotation is there: %t", queued, requestsTokens(w))
			}
			w.Look(key)
			w.LookAtAccount("ns/web")
			if len(w.Tokens) != 2 || requestsTokens(w) {
				t.Errorf("%d tokens, want 2; the annotation is there: %t", len(w.Tokens), requestsTokens(w))
			}
		})
	}
}
