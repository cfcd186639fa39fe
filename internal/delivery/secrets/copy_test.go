package secrets_test

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
	"github.com/credence-id/credence/internal/delivery/deliverytest"
)

func boundBy(user string, secret *corev1.Secret) *corev1.Secret {
	secret.Annotations[v1alpha1.AnnotationRequester] = user
	return secret
}

// static is a world with Secrets of the binding ns/infra, which refers to a Secret.
func static(t *testing.T, secrets ...*corev1.Secret) (*deliverytest.World, boundTo) {
	objects := make([]client.Object, 0, len(secrets))
	for _, secret := range secrets {
		objects = append(objects, secret)
	}
	w := deliverytest.New(t, objects...)
	w.AddIdentity("ns", "banana", "u1")
	w.Data = map[string][]byte{"id": []byte("AKIA"), "key": []byte("s3cret")}
	bindings := boundTo{"ns/infra": ""}
	w.Secrets.Bindings = bindings
	return w, bindings
}

// settle looks at a Secret, as its events would have the agent do.
func settle(w *deliverytest.World, key string) (after time.Duration) {
	for range 4 {
		after = w.Look(key)
	}
	return after
}

func wantData(t testing.TB, w *deliverytest.World, what, key string, want ...string) {
	t.Helper()
	held := map[string]string{}
	for name, value := range w.Secret(key).Data {
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
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Data is in the Secret while the binding refers to it, and a token while it refers to an identity, and never both.
func TestDataFollowsItsBinding(t *testing.T) {
	w, bindings := static(t, bound("ns", "s", "infra"))
	copiedKeys := func() string { return w.Secret("ns/s").Annotations[v1alpha1.AnnotationCopiedKeys] }
	if after := settle(w, "ns/s"); after <= 0 || after > 5*time.Second {
		t.Errorf("looked at again after %s", after)
	}
	wantData(t, w, "static", "ns/s", "id=AKIA", "key=s3cret")
	if copiedKeys() != "ns/infra:id,key" {
		t.Errorf("recorded: %q", copiedKeys())
	}
	w.Data = map[string][]byte{"id": []byte("AKIB"), "region": []byte("eu")}
	w.Pass(5 * time.Second)
	settle(w, "ns/s")
	wantData(t, w, "rotated", "ns/s", "id=AKIB", "region=eu")
	bindings["ns/infra"] = "banana"
	w.Look("ns/s")
	wantData(t, w, "right after a flip", "ns/s")
	settle(w, "ns/s")
	wantData(t, w, "by identity", "ns/s", "token=", "config=")
	if copiedKeys() != "" {
		t.Errorf("recorded: %q", copiedKeys())
	}
	bindings["ns/infra"] = ""
	w.Pass(5 * time.Second)
	settle(w, "ns/s")
	wantData(t, w, "and back", "ns/s", "id=AKIB", "region=eu")
	annotations := w.Secret("ns/s").Annotations
	for _, gone := range []string{v1alpha1.AnnotationRenewTimestamp, v1alpha1.AnnotationInputs, v1alpha1.AnnotationOrphaned} {
		if value, there := annotations[gone]; there {
			t.Errorf("%s is %q", gone, value)
		}
	}
	if strings.Contains(w.Events(), "AKI") {
		t.Error("an Event has data")
	}
}

// A copy that must end is taken out within ten seconds.
func TestDataGoes(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("no consent"))
	for what, test := range map[string]struct {
		change func(*deliverytest.World, boundTo)
		event  string
	}{
		"the binding is deleted":          {func(_ *deliverytest.World, b boundTo) { delete(b, "ns/infra") }, "does not exist"},
		"reads of the binding are denied": {func(w *deliverytest.World, b boundTo) { w.Secrets.Bindings = &answers{b, w, 0, []error{forbidden}} }, "IdentityUnreadable"},
		"… and not answered meanwhile": {func(w *deliverytest.World, b boundTo) {
			outage := errors.New("no route to host")
			w.Secrets.Bindings = &answers{b, w, 0, []error{forbidden, outage, apierrors.NewUnauthorized("left"), outage}}
		}, "IdentityUnreadable"},
		"it refers to an identity that is not there": {func(_ *deliverytest.World, b boundTo) { b["ns/infra"] = "cherry" }, "does not exist"},
		"the consent is taken back":                  {func(w *deliverytest.World, _ boundTo) { w.Data, w.DataErr = nil, forbidden }, "DataRefused"},
		"the agent is refused":                       {func(w *deliverytest.World, _ boundTo) { w.Data, w.DataErr = nil, apierrors.NewUnauthorized("left") }, "DataRefused"},
		"the server sees the flip first": {func(w *deliverytest.World, _ boundTo) {
			w.Data, w.DataErr = nil, apierrors.NewConflict(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("it refers to no Secret"))
		}, "DataRefused"},
		"an answer that is not one": {func(w *deliverytest.World, _ boundTo) { w.Data = map[string][]byte{"config": nil} }, "DataRefused"},
		"its user may not use the binding": {func(w *deliverytest.World, _ boundTo) {
			w.Denied["jane"] = true
			w.Pass(time.Minute)
		}, "UseDenied"},
		"the Secret names another binding": {func(w *deliverytest.World, b boundTo) {
			b["ns/other"] = "banana"
			w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationBinding] = "other" })
			w.AddIdentity("ns", "banana", "u1").DeletionTimestamp = &metav1.Time{Time: deliverytest.Start}
		}, "is being deleted"},
		"it was deleted, and a finalizer keeps it": {func(w *deliverytest.World, _ boundTo) {
			w.Edit("ns/s", func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} })
			w.Delete("ns/s")
		}, ""},
		"the Secret names nothing": {func(w *deliverytest.World, _ boundTo) {
			w.Edit("ns/s", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationBinding) })
		}, "InvalidAnnotation"},
	} {
		t.Run(what, func(t *testing.T) {
			w, bindings := static(t, boundBy("jane", bound("ns", "s", "infra")))
			settle(w, "ns/s")
			wantData(t, w, "before", "ns/s", "id=AKIA", "key=s3cret")
			test.change(w, bindings)
			for range 8 {
				w.Look("ns/s")
				w.Clock.SetTime(w.Clock.Now().Add(time.Second))
			}
			wantData(t, w, "after", "ns/s")
			settle(w, "ns/s")
			if events := w.Events(); !strings.Contains(events, test.event) || strings.Contains(events, "s3cret") {
				t.Errorf("Events, want %q:\n%s", test.event, events)
			}
		})
	}
}

// An outage is not a refusal, and neither is a single denial: a kube-apiserver that starts denies everything.
func TestOutageKeepsData(t *testing.T) {
	w, _ := static(t, bound("ns", "s", "infra"))
	settle(w, "ns/s")
	before := w.Secret("ns/s").ResourceVersion
	for _, err := range []error{
		errors.New("no route to host"), apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("later", 1), apierrors.NewInternalError(errors.New("x")),
		apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("roles are not read")), nil,
	} {
		w.Pass(time.Minute)
		w.DataErr = err
		w.Look("ns/s")
		if after := w.Secret("ns/s").ResourceVersion; after != before {
			t.Errorf("%v: the Secret was written", err)
		}
	}
}

// Neither is a denial of the binding, to an agent that has just started: the agent looks again when a second one would count.
func TestOneDenialOfTheBindingKeepsData(t *testing.T) {
	w, bindings := static(t, bound("ns", "s", "infra"))
	settle(w, "ns/s")
	before := w.Secret("ns/s").ResourceVersion
	w.Secrets.Ledger.Forget(client.ObjectKey{Namespace: "ns", Name: "s"})
	denied := apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("roles are not read"))
	w.Secrets.Bindings = &answers{bindings, w, time.Second, []error{denied, denied, nil, denied, nil}}
	for i, want := range []time.Duration{2 * time.Second, 2 * time.Second, 5 * time.Second, 2 * time.Second, 5 * time.Second} {
		if after := w.Look("ns/s"); after != want {
			t.Errorf("look %d: again after %s, want %s", i, after, want)
		}
		if after := w.Secret("ns/s").ResourceVersion; after != before {
			t.Errorf("look %d: the Secret was written", i)
		}
		if i > 0 {
			w.Pass(5 * time.Second)
		}
	}
}

// All Secrets of a binding share its requests.
func TestSecretsOfABindingShareRequests(t *testing.T) {
	var all []*corev1.Secret
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, bound("ns", name, "infra"))
	}
	w, _ := static(t, all...)
	for range 20 {
		for _, secret := range all {
			settle(w, "ns/"+secret.Name)
		}
		w.Pass(time.Second)
	}
	if len(w.DataFor) > 5 {
		t.Errorf("%d requests in 20 seconds", len(w.DataFor))
	}
	for _, secret := range all {
		wantData(t, w, secret.Name, "ns/"+secret.Name, "id=AKIA", "key=s3cret")
	}
}

// Keys that the Secret has of its own are neither overwritten nor taken out, and an immutable Secret gets none.
func TestDataThatClashes(t *testing.T) {
	clash := bound("ns", "s", "infra")
	clash.Data["key"] = []byte("mine")
	fixed := bound("ns", "fixed", "infra")
	fixed.Immutable = new(true)
	w, bindings := static(t, clash, fixed)
	settle(w, "ns/s")
	settle(w, "ns/fixed")
	wantData(t, w, "with a key of its own", "ns/s", "key=mine")
	wantData(t, w, "immutable", "ns/fixed")
	if events := w.Events(); !strings.Contains(events, "DataClashes") || !strings.Contains(events, ": key:") || !strings.Contains(events, "SecretImmutable") {
		t.Errorf("Events:\n%s", events)
	}
	bindings["ns/infra"] = "banana"
	settle(w, "ns/s")
	wantData(t, w, "by identity", "ns/s", "key=mine", "token=", "config=")
}

// Another writer who takes the data out again is followed, and not without end.
func TestRemovedDataIsWrittenSlowly(t *testing.T) {
	w, _ := static(t, bound("ns", "s", "infra"))
	writes := 0
	w.OnPatch = func(client.Object) { writes++ }
	for range 60 {
		w.Look("ns/s")
		w.Edit("ns/s", func(s *corev1.Secret) {
			maps.DeleteFunc(s.Data, func(key string, _ []byte) bool { return key != "theirs" })
			delete(s.Annotations, v1alpha1.AnnotationCopiedKeys)
		})
		w.Clock.SetTime(w.Clock.Now().Add(time.Second))
	}
	if writes < 2 || writes > 20 {
		t.Errorf("%d writes in a minute", writes)
	}
}
