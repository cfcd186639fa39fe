package contexts_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
)

// dataDelivery is one of the data of the binding garden-local/infra.
func dataDelivery(name string) *identityv1alpha1.ContextDelivery {
	d := delivery(name)
	d.Spec.WorkloadIdentity, d.Spec.Config = nil, ""
	d.Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "infra"}
	return d
}

// staticSeed is a seed whose Secret has the static credentials of the binding.
func staticSeed(t *testing.T) seed {
	w := newSeed(t)
	w.Data = map[string][]byte{"id": []byte("AKIA"), "key": []byte("s3cret")}
	w.Deliveries = append(w.Deliveries, dataDelivery("d1"))
	w.followAll()
	return w
}

// followAll has the agent look at the Secret as often as its events would.
func (w seed) followAll() {
	for range 4 {
		w.deliver(cloudprovider)
		w.Look(cloudprovider)
	}
}

func (w seed) wantKeys(what string, want ...string) {
	w.t.Helper()
	got := slices.Sorted(maps.Keys(w.Secret(cloudprovider).Data))
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("keys, %s (-want +got):\n%s", what, diff)
	}
}

// The Secret of an object follows its binding from a static key to an identity and back, and has one of both at a time.
func TestStaticCredentialsOfAContextObject(t *testing.T) {
	w := staticSeed(t)
	got := w.Secret(cloudprovider)
	if _, named := got.Annotations[v1alpha1.AnnotationName]; named || got.Annotations[v1alpha1.AnnotationBinding] != "infra" || got.Annotations[v1alpha1.AnnotationNamespace] != "garden-local" ||
		got.Annotations[v1alpha1.AnnotationContextObject] != fooObject || got.Labels[v1alpha1.LabelProvider] != "aws" || got.Annotations[v1alpha1.AnnotationCopiedKeys] != "garden-local/infra:id,key" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	w.wantKeys("static", "id", "key")
	if last := w.DataFor[len(w.DataFor)-1]; last == nil || last.Kind != "Shoot" || last.UID != "54d09554-6a68-4f46-a23a-e3592385d820" {
		t.Errorf("data was requested for %v", last)
	}

	w.Deliveries[0] = delivery("d1")
	w.deliver(cloudprovider)
	w.wantKeys("before the data is taken out", "id", "key")
	w.Look(cloudprovider)
	w.wantKeys("right after a flip")
	w.followAll()
	w.wantKeys("by identity", "config", "token")

	w.Pass(time.Minute)
	w.Deliveries[0] = dataDelivery("d1")
	w.followAll()
	w.wantKeys("and back", "id", "key")
	if got := w.Secret(cloudprovider).Annotations; got[v1alpha1.AnnotationName] != "" || got[v1alpha1.AnnotationInputs] != "" || got[v1alpha1.AnnotationRenewTimestamp] != "" {
		t.Errorf("annotations %v", got)
	}
	if events := w.Events(); events != "" || w.state() != contexts.Delivered {
		t.Errorf("%s, Events:\n%s", w.state(), events)
	}

	// Without consent the Secret stays, and keeps its token until that expires.
	w.Deliveries[0] = delivery("d1")
	w.followAll()
	w.Pass(10 * time.Second)
	w.Deliveries[0], w.Data, w.DataErr = dataDelivery("d1"), nil, apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("no consent"))
	for range 8 {
		w.Pass(time.Second)
		w.followAll()
	}
	w.wantKeys("without consent", "config", "token")
	if events := w.Events(); !strings.Contains(events, "DataRefused") {
		t.Errorf("Events:\n%s", events)
	}
}

// Static credentials go within ten seconds with their reference and their consent, whatever else is wrong.
func TestStaticCredentialsOfAContextObjectGo(t *testing.T) {
	refuse := func(w seed) {
		w.Data, w.DataErr = nil, apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("the context object does not refer to the binding"))
	}
	unplaced := func() *identityv1alpha1.ContextDelivery {
		d := delivery("d9")
		d.Spec.Secret, d.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "secretName: no such key"
		return d
	}
	for name, change := range map[string]func(seed){
		"the server refuses": refuse,
		"the binding refers to an identity with a problem": func(w seed) {
			refuse(w)
			w.Deliveries[0] = delivery("d1")
			w.Deliveries[0].Spec.CredentialsBinding = dataDelivery("d1").Spec.CredentialsBinding
			w.Deliveries[0].Spec.Config, w.Deliveries[0].Spec.Provider, w.Deliveries[0].Spec.Problem = "", "", "WorkloadIdentity garden-local/banana-testing does not exist"
		},
		"the cluster may not have it": func(w seed) {
			refuse(w)
			w.Deliveries[0].Spec.Problem = "WorkloadCluster east may not have data"
		},
		"it is not known which Secrets the object needs": func(w seed) {
			refuse(w)
			w.Deliveries[0] = unplaced()
		},
		"the namespace has lost its label": func(w seed) { w.relabel(nil) },
		"the same, and a flip": func(w seed) {
			w.relabel(nil)
			w.Deliveries[0] = delivery("d1")
		},
		"another binding": func(w seed) {
			refuse(w)
			w.Deliveries[0].Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "other"}
		},
		"no delivery": func(w seed) { w.Deliveries = nil },
		"the same, and a finalizer": func(w seed) {
			w.Edit(cloudprovider, func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} })
			w.Deliveries = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := staticSeed(t)
			change(w)
			for range 10 {
				w.follow(cloudprovider)
				w.Pass(time.Second)
			}
			if w.exists(cloudprovider) {
				w.wantKeys("after")
			}
			if exists := w.exists(cloudprovider); exists == (name == "no delivery") {
				t.Errorf("the Secret is there: %v", exists)
			}
		})
	}
	// An outage is not a refusal.
	for name, change := range map[string]func(seed){
		"nothing is known after a start": func(w seed) { w.DeliveriesUnknown, w.Deliveries, w.DataErr = true, nil, errors.New("no route to host") },
		"no answer":                      func(w seed) { w.DataErr = errors.New("no route to host") },
		"the place is not known, and the data is given": func(w seed) { w.Deliveries[0] = unplaced() },
	} {
		w := staticSeed(t)
		change(w)
		for range 30 {
			w.follow(cloudprovider)
			w.Pass(time.Second)
		}
		w.wantKeys(name, "id", "key")
	}
}

// Other software may deliver static credentials, as Gardener does: its Secrets are left alone, and no Event has people look.
func TestSecretsOfOthersAreLeftAlone(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: seedNamespace, Name: "cloudprovider"}, Data: map[string][]byte{"accessKey": []byte("static")}}
	for name, start := range map[string]func() seed{
		"a Secret": func() seed { return newSeed(t, theirs.DeepCopy()) },
		"a labeled Secret": func() seed {
			labeled := theirs.DeepCopy()
			labeled.Labels = map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}
			return newSeed(t, labeled)
		},
		"no label": func() seed {
			w := newSeed(t)
			w.relabel(nil)
			return w
		},
	} {
		w := start()
		w.Data, w.Deliveries = map[string][]byte{"id": nil}, append(w.Deliveries, dataDelivery("d1"))
		before := w.exists(cloudprovider)
		w.deliver(cloudprovider)
		if events := w.Events(); events != "" || w.exists(cloudprovider) != before || w.state() != "" {
			t.Errorf("%s: %s, Events: %s", name, w.state(), events)
		}
		if before {
			w.wantKeys(name, "accessKey")
		}
	}
}
