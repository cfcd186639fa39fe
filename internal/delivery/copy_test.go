package delivery

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

func boundBy(user string, secret *corev1.Secret) *corev1.Secret {
	secret.Annotations[v1alpha1.AnnotationRequester] = user
	return secret
}

// static is a world with Secrets of the binding ns/infra, which refers to a Secret.
func static(t *testing.T, secrets ...*corev1.Secret) (*world, boundTo) {
	objects := make([]client.Object, 0, len(secrets))
	for _, secret := range secrets {
		objects = append(objects, secret)
	}
	w := newWorld(t, objects...)
	w.addIdentity("ns", "banana", "u1")
	w.data = map[string][]byte{"id": []byte("AKIA"), "key": []byte("s3cret")}
	bindings := boundTo{"ns/infra": ""}
	w.requestor.Bindings = bindings
	return w, bindings
}

// settle looks at a Secret, as its events would have the agent do.
func (w *world) settle(key string) (after time.Duration) {
	for range 4 {
		after = w.look(key)
	}
	return after
}

func (w *world) wantData(what, key string, want ...string) {
	w.t.Helper()
	held := map[string]string{}
	for name, value := range w.secret(key).Data {
		if name == "token" || name == "config" {
			value = nil
		}
		held[name] = string(value)
	}
	wanted := map[string]string{"theirs": "kept"}
	for _, pair := range want {
		name, value, _ := strings.Cut(pair, "=")
		wanted[name] = value
	}
	if diff := cmp.Diff(wanted, held); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Data is in the Secret while the binding refers to it, and a token while it refers to an identity, and never both.
func TestDataOfABinding(t *testing.T) {
	w, bindings := static(t, bound("ns", "s", "infra"))
	copiedKeys := func() string { return w.secret("ns/s").Annotations[v1alpha1.AnnotationCopiedKeys] }
	if after := w.settle("ns/s"); after <= 0 || after > 5*time.Second {
		t.Errorf("looked at again after %s", after)
	}
	w.wantData("static", "ns/s", "id=AKIA", "key=s3cret")
	if copiedKeys() != "ns/infra:id,key" {
		t.Errorf("recorded: %q", copiedKeys())
	}
	w.data = map[string][]byte{"id": []byte("AKIB"), "region": []byte("eu")}
	w.pass(5 * time.Second)
	w.settle("ns/s")
	w.wantData("rotated", "ns/s", "id=AKIB", "region=eu")
	bindings["ns/infra"] = "banana"
	w.look("ns/s")
	w.wantData("right after a flip", "ns/s")
	w.settle("ns/s")
	w.wantData("by identity", "ns/s", "token=", "config=")
	if copiedKeys() != "" {
		t.Errorf("recorded: %q", copiedKeys())
	}
	bindings["ns/infra"] = ""
	w.pass(5 * time.Second)
	w.settle("ns/s")
	w.wantData("and back", "ns/s", "id=AKIB", "region=eu")
	annotations := w.secret("ns/s").Annotations
	for _, gone := range []string{v1alpha1.AnnotationRenewTimestamp, v1alpha1.AnnotationInputs, v1alpha1.AnnotationOrphaned} {
		if value, there := annotations[gone]; there {
			t.Errorf("%s is %q", gone, value)
		}
	}
	if strings.Contains(w.allEvents(), "AKI") {
		t.Error("an Event has data")
	}
}

func (w *world) allEvents() string {
	var all []string
	for event := w.event(); event != ""; event = w.event() {
		all = append(all, event)
	}
	return strings.Join(all, "\n")
}

// A copy that must end is taken out within ten seconds.
func TestDataGoes(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("no consent"))
	for what, test := range map[string]struct {
		change func(*world, boundTo)
		event  string
	}{
		"the binding is deleted":          {func(_ *world, b boundTo) { delete(b, "ns/infra") }, "does not exist"},
		"reads of the binding are denied": {func(w *world, b boundTo) { w.requestor.Bindings = &answers{b, w, 0, []error{forbidden}} }, "IdentityUnreadable"},
		"… and not answered meanwhile": {func(w *world, b boundTo) {
			outage := errors.New("no route to host")
			w.requestor.Bindings = &answers{b, w, 0, []error{forbidden, outage, apierrors.NewUnauthorized("left"), outage}}
		}, "IdentityUnreadable"},
		"it refers to an identity that is not there": {func(_ *world, b boundTo) { b["ns/infra"] = "cherry" }, "does not exist"},
		"the consent is taken back":                  {func(w *world, _ boundTo) { w.data, w.dataErr = nil, forbidden }, "DataRefused"},
		"the agent is refused":                       {func(w *world, _ boundTo) { w.data, w.dataErr = nil, apierrors.NewUnauthorized("left") }, "DataRefused"},
		"the server sees the flip first": {func(w *world, _ boundTo) {
			w.data, w.dataErr = nil, apierrors.NewConflict(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("it refers to no Secret"))
		}, "DataRefused"},
		"an answer that is not one": {func(w *world, _ boundTo) { w.data = map[string][]byte{"config": nil} }, "DataRefused"},
		"its user may not use the binding": {func(w *world, _ boundTo) {
			w.denied["jane"] = true
			w.pass(time.Minute)
		}, "UseDenied"},
		"the Secret names another binding": {func(w *world, b boundTo) {
			b["ns/other"] = "banana"
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationBinding] = "other" })
			w.addIdentity("ns", "banana", "u1").DeletionTimestamp = &metav1.Time{Time: start0}
		}, "is being deleted"},
		"it was deleted, and a finalizer keeps it": {func(w *world, _ boundTo) {
			w.edit("ns/s", func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} })
			if err := w.client.Delete(w.t.Context(), w.secret("ns/s")); err != nil {
				w.t.Error(err)
			}
		}, ""},
		"the Secret names nothing": {func(w *world, _ boundTo) {
			w.edit("ns/s", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationBinding) })
		}, "InvalidAnnotation"},
	} {
		t.Run(what, func(t *testing.T) {
			w, bindings := static(t, boundBy("jane", bound("ns", "s", "infra")))
			w.settle("ns/s")
			w.wantData("before", "ns/s", "id=AKIA", "key=s3cret")
			test.change(w, bindings)
			for range 8 {
				w.look("ns/s")
				w.clock.SetTime(w.clock.Now().Add(time.Second))
			}
			w.wantData("after", "ns/s")
			w.settle("ns/s")
			if events := w.allEvents(); !strings.Contains(events, test.event) || strings.Contains(events, "s3cret") {
				t.Errorf("Events, want %q:\n%s", test.event, events)
			}
		})
	}
}

// An outage is not a refusal, and neither is a single denial: a kube-apiserver that starts denies everything.
func TestDataStays(t *testing.T) {
	w, _ := static(t, bound("ns", "s", "infra"))
	w.settle("ns/s")
	before := w.secret("ns/s").ResourceVersion
	for _, err := range []error{
		errors.New("no route to host"), apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("later", 1), apierrors.NewInternalError(errors.New("x")),
		apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("roles are not read")), nil,
	} {
		w.pass(time.Minute)
		w.dataErr = err
		w.look("ns/s")
		if after := w.secret("ns/s").ResourceVersion; after != before {
			t.Errorf("%v: the Secret was written", err)
		}
	}
}

// Neither is a denial of the binding, to an agent that has just started: the agent looks again when a second one would count.
func TestDataStaysWithItsBindingDenied(t *testing.T) {
	w, bindings := static(t, bound("ns", "s", "infra"))
	w.settle("ns/s")
	before := w.secret("ns/s").ResourceVersion
	w.requestor.Ledger.Forget(client.ObjectKey{Namespace: "ns", Name: "s"})
	denied := apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("roles are not read"))
	w.requestor.Bindings = &answers{bindings, w, time.Second, []error{denied, denied, nil, denied, nil}}
	for i, want := range []time.Duration{2 * time.Second, 2 * time.Second, 5 * time.Second, 2 * time.Second, 5 * time.Second} {
		if after := w.look("ns/s"); after != want {
			t.Errorf("look %d: again after %s, want %s", i, after, want)
		}
		if after := w.secret("ns/s").ResourceVersion; after != before {
			t.Errorf("look %d: the Secret was written", i)
		}
		if i > 0 {
			w.pass(5 * time.Second)
		}
	}
}

// All Secrets of a binding share its requests.
func TestOneRequestForABinding(t *testing.T) {
	var all []*corev1.Secret
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, bound("ns", name, "infra"))
	}
	w, _ := static(t, all...)
	for range 20 {
		for _, secret := range all {
			w.settle("ns/" + secret.Name)
		}
		w.pass(time.Second)
	}
	if w.dataAsked > 5 {
		t.Errorf("%d requests in 20 seconds", w.dataAsked)
	}
	for _, secret := range all {
		w.wantData(secret.Name, "ns/"+secret.Name, "id=AKIA", "key=s3cret")
	}
}

// Keys that the Secret has of its own are neither overwritten nor taken out, and an immutable Secret gets none.
func TestDataThatClashes(t *testing.T) {
	clash := bound("ns", "s", "infra")
	clash.Data["key"] = []byte("mine")
	fixed := bound("ns", "fixed", "infra")
	fixed.Immutable = new(true)
	w, bindings := static(t, clash, fixed)
	w.settle("ns/s")
	w.settle("ns/fixed")
	w.wantData("with a key of its own", "ns/s", "key=mine")
	w.wantData("immutable", "ns/fixed")
	if events := w.allEvents(); !strings.Contains(events, "DataClashes") || !strings.Contains(events, ": key:") || !strings.Contains(events, "SecretImmutable") {
		t.Errorf("Events:\n%s", events)
	}
	bindings["ns/infra"] = "banana"
	w.settle("ns/s")
	w.wantData("by identity", "ns/s", "key=mine", "token=", "config=")
}

// Another writer who takes the data out again is followed, and not without end.
func TestDataThatAnotherRemoves(t *testing.T) {
	w, _ := static(t, bound("ns", "s", "infra"))
	writes := 0
	w.onPatch = func(client.Object) { writes++ }
	for range 60 {
		w.look("ns/s")
		w.edit("ns/s", func(s *corev1.Secret) {
			maps.DeleteFunc(s.Data, func(key string, _ []byte) bool { return key != "theirs" })
			delete(s.Annotations, v1alpha1.AnnotationCopiedKeys)
		})
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	if writes < 2 || writes > 20 {
		t.Errorf("%d writes in a minute", writes)
	}
}
