package delivery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// deliveries are what an identity cluster wants delivered.
type deliveries struct {
	all     []*identityv1alpha1.ContextDelivery
	unknown bool
}

func (d *deliveries) Known() bool { return !d.unknown }

func (d *deliveries) Of(secret types.NamespacedName) []*identityv1alpha1.ContextDelivery {
	var found []*identityv1alpha1.ContextDelivery
	for _, delivery := range d.all {
		if delivery.Spec.Secret == (identityv1alpha1.DeliveredSecret{Namespace: secret.Namespace, Name: secret.Name}) {
			found = append(found, delivery)
		}
	}
	return found
}

func (d *deliveries) Named(name string) *identityv1alpha1.ContextDelivery {
	for _, delivery := range d.all {
		if delivery.Name == name {
			return delivery
		}
	}
	return nil
}

func (d *deliveries) Unplaced(object types.UID) bool {
	for _, delivery := range d.all {
		if delivery.Spec.Secret.Name == "" && delivery.Spec.ContextObject.UID == object {
			return true
		}
	}
	return false
}

func (*deliveries) Secrets(string) []types.NamespacedName { return nil }

const (
	seedNamespace = "shoot--local--foo"
	cloudprovider = seedNamespace + "/cloudprovider"
	fooObject     = `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","name":"foo","namespace":"garden-local","uid":"54d09554-6a68-4f46-a23a-e3592385d820"}`
)

// delivery is that of the document's sample, by the delivery of a name.
func delivery(name string) *identityv1alpha1.ContextDelivery {
	return &identityv1alpha1.ContextDelivery{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: identityv1alpha1.ContextDeliverySpec{
			Secret:           identityv1alpha1.DeliveredSecret{Namespace: seedNamespace, Name: "cloudprovider"},
			WorkloadIdentity: &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "banana-testing"},
			ContextObject: identityv1alpha1.DeliveryContext{
				APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: "foo", Namespace: "garden-local", UID: "54d09554-6a68-4f46-a23a-e3592385d820"},
			Provider: "aws", Config: "apiVersion: a/v1\nkind: Config\n",
		},
	}
}

// newSeed is a world with a namespace that lets Secrets be made, and an identity.
func newSeed(t *testing.T, objects ...client.Object) *world {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedNamespace, Labels: map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}}}
	w := newWorld(t, append(objects, namespace)...)
	w.addIdentity("garden-local", "banana-testing", "u1")
	return w
}

// follow has the agent look at what is to be delivered into a Secret, and then at the Secret.
func (w *world) follow(key string) time.Duration {
	w.t.Helper()
	wait := w.deliver(key)
	w.look(key)
	return wait
}

func (w *world) deliver(key string) time.Duration {
	w.t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	result, err := w.contexts.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) state() contexts.State {
	return w.contexts.Ledger.Get(types.NamespacedName{Namespace: seedNamespace, Name: "cloudprovider"}).State
}

func (w *world) exists(key string) bool {
	namespace, name, _ := strings.Cut(key, "/")
	err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// The Secret is that of the document's sample: config at once, then the token.
func TestSecretOfAContextObject(t *testing.T) {
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.deliver(cloudprovider)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: seedNamespace, Name: "cloudprovider",
			Labels: map[string]string{
				"authentication.gardener.cloud/purpose":                   "workload-identity-token-requestor",
				"workloadidentity.authentication.gardener.cloud/provider": "aws",
			},
			Annotations: map[string]string{
				"workloadidentity.authentication.gardener.cloud/namespace":      "garden-local",
				"workloadidentity.authentication.gardener.cloud/name":           "banana-testing",
				"workloadidentity.authentication.gardener.cloud/context-object": fooObject,
				"identity.credence.dev/context-delivery":                        "d1",
			},
		},
		Data: map[string][]byte{"config": []byte("apiVersion: a/v1\nkind: Config\n")},
		Type: "Opaque",
	}
	got := w.secret(cloudprovider)
	got.ResourceVersion = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("before its token (-want +got):\n%s", diff)
	}
	w.look(cloudprovider)
	got = w.secret(cloudprovider)
	if token := secrets.Stored(got); token == nil || token.Subject != "sub:u1" || string(got.Data["config"]) != string(want.Data["config"]) {
		t.Errorf("the Secret holds %+v and %q", token, got.Data["config"])
	}
	if len(w.tokens) != 1 || w.tokens[0].context == nil || w.tokens[0].context.Kind != "Shoot" || w.tokens[0].context.UID != "54d09554-6a68-4f46-a23a-e3592385d820" || w.bindings[0].Name != "" {
		t.Errorf("requested %+v by %v", w.tokens, w.bindings)
	}
	version := got.ResourceVersion
	w.follow(cloudprovider)
	if now := w.secret(cloudprovider); now.ResourceVersion != version || len(w.tokens) != 1 || w.state() != contexts.Delivered {
		t.Errorf("written again without a change: %d tokens, %s", len(w.tokens), w.state())
	}
	if event := w.event(); event != "" {
		t.Errorf("the Event %q", event)
	}
}

// A Secret follows its object to another identity, config and token together, and is deleted when nothing is to be delivered any more.
func TestSecretFollowsItsObject(t *testing.T) {
	w := newSeed(t)
	w.addIdentity("fruit", "cherry", "u2").Spec.TargetSystem.Type = "gcp"
	w.all = append(w.all, delivery("d1"))
	w.follow(cloudprovider)

	w.pass(time.Minute)
	other := delivery("d1")
	other.Spec.WorkloadIdentity = &identityv1alpha1.NamespacedReference{Namespace: "fruit", Name: "cherry"}
	other.Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "infra"}
	other.Spec.Provider, other.Spec.Config = "gcp", "new: config\n"
	w.all[0] = other
	w.look(cloudprovider) // before the Secret is changed
	if len(w.tokens) != 1 || w.event() != "" {
		t.Errorf("%d tokens while the Secret names another identity than it should", len(w.tokens))
	}
	w.deliver(cloudprovider)
	if got := w.secret(cloudprovider); got.Annotations[v1alpha1.AnnotationName] != "cherry" || secrets.Stored(got).Subject != "sub:u1" || got.Labels[v1alpha1.LabelProvider] != "aws" || string(got.Data["config"]) != "apiVersion: a/v1\nkind: Config\n" {
		t.Errorf("config was replaced without the token: %s %s %v", got.Data["config"], got.Labels[v1alpha1.LabelProvider], got.Annotations)
	}
	w.look(cloudprovider)
	got := w.secret(cloudprovider)
	if token := secrets.Stored(got); token.Subject != "sub:u2" || got.Labels[v1alpha1.LabelProvider] != "gcp" || w.bindings[1].String() != "garden-local/infra" {
		t.Errorf("the Secret holds a token of %s for %s, by %v", token.Subject, got.Labels[v1alpha1.LabelProvider], w.bindings)
	}

	// The same object, made anew: it has another delivery into the same Secret.
	w.pass(time.Minute)
	again := delivery("d2")
	again.Spec.ContextObject.UID = "u-anew"
	w.all = []*identityv1alpha1.ContextDelivery{again}
	w.follow(cloudprovider)
	if got := w.secret(cloudprovider); got.Annotations[v1alpha1.AnnotationContextDelivery] != "d2" || len(w.tokens) != 3 || w.tokens[2].context.UID != "u-anew" {
		t.Errorf("%v, %d tokens", got.Annotations, len(w.tokens))
	}

	// It goes when the agent looks again, within ten seconds, and not at once.
	w.all = nil
	var waited time.Duration
	for wait := w.deliver(cloudprovider); w.exists(cloudprovider); wait = w.deliver(cloudprovider) {
		if waited += wait; wait <= 0 || waited > 10*time.Second {
			t.Fatalf("the Secret is still there, and looked at again after %s, which is %s in all", wait, waited)
		}
		w.look(cloudprovider)
		w.pass(wait)
	}
	if waited == 0 || len(w.tokens) != 3 {
		t.Errorf("deleted after %s, with %d tokens", waited, len(w.tokens))
	}
	w.look(cloudprovider)
	w.deliver(cloudprovider)
	if n := len(w.contexts.Ledger.Count()); n != 0 {
		t.Errorf("%d Secrets are remembered", n)
	}
}

// The longest names that there are make a Secret that an API server takes, with a token.
func TestSecretWithTheLongestNames(t *testing.T) {
	longest, namespace := strings.Repeat("n", 253), strings.Repeat("m", 63)
	w := newSeed(t)
	w.addIdentity(namespace, longest, "u3")
	d := delivery("d1")
	d.Spec.Secret.Name = longest
	d.Spec.ContextObject.Namespace, d.Spec.ContextObject.Name = namespace, longest
	d.Spec.WorkloadIdentity = &identityv1alpha1.NamespacedReference{Namespace: namespace, Name: longest}
	d.Spec.CredentialsBinding = d.Spec.WorkloadIdentity
	w.all = append(w.all, d)
	w.follow(seedNamespace + "/" + longest)
	got := w.secret(seedNamespace + "/" + longest)
	if errs := validation.ValidateObjectMeta(&got.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")); len(errs) > 0 {
		t.Error(errs)
	}
	if secrets.Stored(got) == nil || len(w.tokens) != 1 || w.tokens[0].context.Namespace != namespace || w.tokens[0].context.Name != longest || w.bindings[0].Name != longest {
		t.Errorf("requested %+v by %v; Events:\n%s", w.tokens, w.bindings, w.allEvents())
	}
}

// While it is not known what is to be delivered, Secrets stay as they are.
func TestSecretsStayWhileDeliveriesAreNotKnown(t *testing.T) {
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.follow(cloudprovider)
	version := w.secret(cloudprovider).ResourceVersion
	for name, change := range map[string]func(){
		"an outage after a start": func() { w.unknown, w.all = true, nil },
		"its place is not known": func() {
			unplaced := delivery("d9")
			unplaced.Spec.Secret, unplaced.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "secretName: no such key"
			w.unknown, w.all = false, []*identityv1alpha1.ContextDelivery{unplaced}
		},
		"a problem": func() {
			broken := delivery("d1")
			broken.Spec.WorkloadIdentity, broken.Spec.Config, broken.Spec.Problem = nil, "", "WorkloadIdentity garden-local/cherry does not exist"
			w.unknown, w.all = false, []*identityv1alpha1.ContextDelivery{broken}
		},
	} {
		change()
		for range 3 {
			w.follow(cloudprovider)
			w.pass(time.Second)
		}
		if got := w.secret(cloudprovider); got.ResourceVersion != version {
			t.Errorf("%s: the Secret was changed", name)
		}
	}
	// With a problem, the token is renewed as long as the identity cluster issues one.
	broken := delivery("d1")
	broken.Spec.WorkloadIdentity, broken.Spec.Problem = nil, "p"
	w.unknown, w.all = false, []*identityv1alpha1.ContextDelivery{broken}
	w.pass(50 * time.Minute)
	w.follow(cloudprovider)
	if len(w.tokens) != 2 {
		t.Errorf("%d tokens, want a new one in spite of the problem", len(w.tokens))
	}
	// An object that another one displaced for a moment has its Secret all the time.
	w.all = nil
	w.deliver(cloudprovider)
	w.pass(time.Second)
	w.all = []*identityv1alpha1.ContextDelivery{delivery("d1")}
	w.deliver(cloudprovider)
	w.all = nil
	w.pass(5 * time.Second)
	if w.deliver(cloudprovider); !w.exists(cloudprovider) {
		t.Error("deleted at once, as it was not needed some time ago")
	}
}

// A Secret is neither made nor renewed where something is in the way, which is reported to the admins of both clusters.
func TestSecretsThatAreNotMade(t *testing.T) {
	foreign := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: seedNamespace, Name: "cloudprovider"}, Data: map[string][]byte{"accessKey": []byte("static")}}
		if change != nil {
			change(secret)
		}
		return secret
	}
	for name, test := range map[string]struct {
		objects []client.Object
		change  func(*world)
		state   contexts.State
		event   string
	}{
		"another Secret": {objects: []client.Object{foreign(nil)}, state: contexts.NotOwn, event: "SecretNotOwned Secret " + cloudprovider + " exists"},
		"a Secret of a user": {objects: []client.Object{foreign(func(s *corev1.Secret) {
			s.Labels = map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}
			s.Annotations = map[string]string{v1alpha1.AnnotationName: "banana-testing", v1alpha1.AnnotationNamespace: "garden-local", v1alpha1.AnnotationContextObject: fooObject}
		})}, state: contexts.NotOwn, event: "SecretNotOwned"},
		"without the label of tokens": {objects: []client.Object{foreign(func(s *corev1.Secret) {
			s.Annotations = map[string]string{v1alpha1.AnnotationContextDelivery: "d1"}
		})}, state: contexts.NotOwn, event: "SecretNotOwned"},
		"no label": {change: func(w *world) {
			w.relabel(map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled})
		}, state: contexts.NotEnabled, event: "NamespaceNotEnabled the namespace shoot--local--foo does not let Secret shoot--local--foo/cloudprovider be made or renewed: a cluster admin allows it with: kubectl label namespace shoot--local--foo identity.credence.dev/context-delivery=enabled"},
		"another value": {change: func(w *world) { w.relabel(map[string]string{v1alpha1.LabelNamespaceContexts: "true"}) }, state: contexts.NotEnabled, event: "NamespaceNotEnabled"},
		"a problem":     {change: func(w *world) { w.all[0].Spec.Problem = "no such identity" }, state: contexts.Problem, event: "DeliveryProblem nothing is delivered into Secret " + cloudprovider + ": no such identity"},
		"no identity":   {change: func(w *world) { w.all[0].Spec.WorkloadIdentity = nil }, state: contexts.Problem, event: "DeliveryProblem"},
		"two objects":   {change: func(w *world) { w.all = append(w.all, delivery("d2")) }, state: contexts.Conflict, event: "DeliveryConflict"},
		"problems": {change: func(w *world) {
			w.all[0].Spec.Problem = "no such identity"
			w.all = append(w.all, delivery("d2"))
			w.all[1].Spec.Problem = "created later"
		}, state: contexts.Problem, event: "DeliveryProblem nothing is delivered into Secret " + cloudprovider + ": no such identity"},
		"two objects, and another Secret": {objects: []client.Object{foreign(nil)}, change: func(w *world) { w.all = append(w.all, delivery("d2")) }, state: contexts.Conflict, event: "DeliveryConflict"},
		"no right yet":                    {change: func(w *world) { w.unserved = seedNamespace }, state: contexts.Waiting},
		"no right":                        {change: func(w *world) { w.unserved = seedNamespace; w.deliver(cloudprovider) }, state: contexts.Waiting, event: "NamespaceNotBound the agent may not read Secrets of the namespace " + seedNamespace},
		"refused writes": {change: func(w *world) {
			w.uncreatable = apierrors.NewForbidden(corev1.Resource("secrets"), "cloudprovider", errors.New("a policy"))
		}, state: contexts.NotWritten, event: "WriteFailed"},
	} {
		w := newSeed(t, test.objects...)
		w.all = append(w.all, delivery("d1"))
		if test.change != nil {
			test.change(w)
		}
		before := w.exists(cloudprovider)
		for range 3 {
			w.deliver(cloudprovider)
		}
		if before {
			w.look(cloudprovider)
			if got := w.secret(cloudprovider); got.ResourceVersion != "999" {
				t.Errorf("%s: the Secret was changed", name)
			}
		}
		if w.exists(cloudprovider) != before || w.state() != test.state || len(w.tokens) != 0 {
			t.Errorf("%s: exists %v, %s, %d tokens", name, w.exists(cloudprovider), w.state(), len(w.tokens))
		}
		if event := w.event(); !strings.Contains(event, test.event) || (event == "") != (test.event == "") {
			t.Errorf("%s: the Event %q, want %q", name, event, test.event)
		}
		if event := w.event(); event != "" && !strings.Contains(event, "no tokens are written") {
			t.Errorf("%s: one more Event %q", name, event)
		}
	}
}

// Where not even the Secret is known, the object has the reason: once, and not while the object may be on its way to its place.
func TestProblemWithoutASecret(t *testing.T) {
	w := newSeed(t)
	theirs := w.contexts.Events.Identity.(*record.FakeRecorder).Events
	event := func() string {
		select {
		case event := <-theirs:
			return event
		default:
			return w.event()
		}
	}
	unplaced := delivery("d9")
	unplaced.Spec.Secret, unplaced.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "the Secret of reference dns is not known: deliver.namespace: no such key: status"
	w.all = append(w.all, unplaced)
	if keys := w.contexts.Unplaced(); len(keys) != 1 || keys[0] != (types.NamespacedName{Name: "d9"}) {
		t.Errorf("looked at are %v", keys)
	}
	for range 2 {
		wait := w.deliver("/d9")
		if got := event(); wait != time.Minute || got != "" {
			t.Fatalf("looked at again after %s, with the Event %q", wait, got)
		}
		w.all = nil // it has its place, and loses it again
		w.deliver("/d9")
		w.pass(time.Minute)
		w.all = append(w.all, unplaced)
	}
	w.deliver("/d9")
	w.pass(time.Minute)
	for range 2 {
		w.deliver("/d9")
	}
	if got := event(); got != "Warning DeliveryProblem "+unplaced.Spec.Problem {
		t.Errorf("the Event %q", got)
	}
	if got := event(); got != "" {
		t.Errorf("one more Event %q", got)
	}
	if count := w.contexts.Ledger.Count(); count[contexts.Problem] != 1 {
		t.Errorf("counted %v", count)
	}
	w.all = nil
	if w.deliver("/d9"); len(w.contexts.Ledger.Count()) != 0 {
		t.Errorf("remembered are %v", w.contexts.Ledger.Count())
	}
}

// A Secret that is not needed any more, and that the agent may not delete, is reported once.
func TestSecretLeftBehind(t *testing.T) {
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.deliver(cloudprovider)
	w.unserved, w.all = seedNamespace, nil
	w.deliver(cloudprovider)
	if event := w.event(); !strings.Contains(event, "NamespaceNotBound Secret "+cloudprovider+" may still be there") {
		t.Errorf("the Event %q", event)
	}
	w.deliver(cloudprovider)
	if event := w.event(); event != "" {
		t.Errorf("one more Event %q", event)
	}
}

// Of two objects that need one Secret, it follows the one for which the identity cluster has no problem.
func TestSecretOfTwoObjects(t *testing.T) {
	w := newSeed(t)
	young, old := delivery("d1"), delivery("d2")
	old.Spec.ContextObject.Name = "old"
	w.all = append(w.all, young)
	madeFor := func(want string) {
		t.Helper()
		w.deliver(cloudprovider)
		if got := w.secret(cloudprovider).Annotations[v1alpha1.AnnotationContextDelivery]; got != want {
			t.Errorf("the Secret is made for %s, want %s", got, want)
		}
	}
	madeFor("d1")
	w.all = append(w.all, old)
	madeFor("d1") // until it is known which of them keeps it
	young.Spec.Problem = "another object, created earlier, has it"
	madeFor("d2")
	old.Spec.Problem = "no such identity"
	madeFor("d2")

	none := newSeed(t)
	old.Spec.Problem = ""
	none.all = append(none.all, young, old)
	none.deliver(cloudprovider)
	if got := none.secret(cloudprovider).Annotations[v1alpha1.AnnotationContextDelivery]; got != "d2" {
		t.Errorf("a Secret that did not exist is made for %s", got)
	}
}

// A Secret of a user gets no token by a copy of what the agent's own has, and one of the agent's none where the label has gone.
func TestForgedMarks(t *testing.T) {
	copied := func(name string, change func(*corev1.Secret)) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: seedNamespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor},
			Annotations: map[string]string{v1alpha1.AnnotationName: "banana-testing", v1alpha1.AnnotationNamespace: "garden-local",
				v1alpha1.AnnotationContextObject: fooObject, v1alpha1.AnnotationContextDelivery: "d1"},
		}}
		if change != nil {
			change(secret)
		}
		return secret
	}
	for name, secret := range map[string]*corev1.Secret{
		"another name":     copied("mine", nil),
		"no mark":          copied("cloudprovider", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationContextDelivery) }),
		"another delivery": copied("cloudprovider", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationContextDelivery] = "d7" }),
		"another identity": copied("cloudprovider", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationName] = "cherry" }),
		"another object": copied("cloudprovider", func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = strings.ReplaceAll(fooObject, "foo", "bar")
		}),
		"another namespace": copied("cloudprovider", func(s *corev1.Secret) { s.Namespace = "mallory" }),
		"an escape in it": copied("cloudprovider", func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = strings.ReplaceAll(fooObject, "Shoot", `\u0053hoot`)
		}),
		"a service account?": copied("cloudprovider", func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = strings.ReplaceAll(fooObject, "core.gardener.cloud/v1beta1", "v1")
		}),
	} {
		mallory := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mallory", Labels: map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}}}
		w := newSeed(t, secret, mallory)
		w.addIdentity("garden-local", "cherry", "u2")
		w.all = append(w.all, delivery("d1"))
		w.look(secret.Namespace + "/" + secret.Name)
		if len(w.tokens) != 0 {
			t.Errorf("%s: %+v", name, w.tokens)
		}
	}
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.follow(cloudprovider)
	w.relabel(nil)
	w.pass(50 * time.Minute)
	w.follow(cloudprovider)
	if len(w.tokens) != 1 || !w.exists(cloudprovider) {
		t.Errorf("%d tokens without the label", len(w.tokens))
	}
	// The agent still removes what it has made.
	w.all = nil
	w.deliver(cloudprovider)
	w.pass(5 * time.Second)
	if w.deliver(cloudprovider); w.exists(cloudprovider) {
		t.Error("a Secret that none needs stays without the label")
	}
	// An agent that follows no deliveries fills none.
	w = newSeed(t, copied("cloudprovider", nil))
	w.requestor.Contexts = nil
	if w.look(cloudprovider); len(w.tokens) != 0 || !strings.Contains(w.event(), "has not joined one") {
		t.Errorf("%d tokens of an agent that has not joined", len(w.tokens))
	}
}

// A request for new tokens on the object renews each of its Secrets once, also across a restart.
func TestRenewalOfAContextObject(t *testing.T) {
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.all[0].Spec.Renewal = "before"
	tokens := func(want int, when string) {
		t.Helper()
		for range 3 {
			w.pass(20 * time.Second)
			w.follow(cloudprovider)
		}
		if len(w.tokens) != want {
			t.Errorf("%s: %d tokens, want %d", when, len(w.tokens), want)
		}
	}
	tokens(1, "made while a request is there")
	for i, renewal := range []string{"a", "", "a", "b"} {
		w.all[0].Spec.Renewal = renewal
		w.contexts.Ledger.Forget(types.NamespacedName{Namespace: seedNamespace, Name: "cloudprovider"})
		tokens([]int{2, 2, 2, 3}[i], fmt.Sprintf("request %d, %q", i, renewal))
	}
	if got := w.secret(cloudprovider); got.Annotations[v1alpha1.AnnotationOperation] != "" || got.Annotations[v1alpha1.AnnotationContextRenewal] != "b" {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// A Secret that is deleted, or edited where no policy keeps users from it, comes back as it was.
func TestDeliveredSecretIsPutRight(t *testing.T) {
	w := newSeed(t)
	w.all = append(w.all, delivery("d1"))
	w.follow(cloudprovider)
	if err := w.client.Delete(t.Context(), w.secret(cloudprovider)); err != nil {
		t.Fatal(err)
	}
	w.look(cloudprovider)
	w.follow(cloudprovider)
	if len(w.tokens) != 2 {
		t.Fatalf("%d tokens", len(w.tokens))
	}
	w.pass(time.Minute)
	w.edit(cloudprovider, func(s *corev1.Secret) {
		s.Annotations[v1alpha1.AnnotationName] = "cherry"
		s.Data["config"] = []byte("mallory: yes\n")
		s.Data["theirs"] = []byte("kept")
		delete(s.Labels, v1alpha1.LabelProvider)
	})
	w.follow(cloudprovider)
	got := w.secret(cloudprovider)
	if got.Annotations[v1alpha1.AnnotationName] != "banana-testing" || string(got.Data["config"]) != "apiVersion: a/v1\nkind: Config\n" || got.Labels[v1alpha1.LabelProvider] != "aws" || string(got.Data["theirs"]) != "kept" {
		t.Errorf("it has become %v %q", got.Annotations, got.Data)
	}
}

// dataDelivery is one of the data of the binding garden-local/infra.
func dataDelivery(name string) *identityv1alpha1.ContextDelivery {
	d := delivery(name)
	d.Spec.WorkloadIdentity, d.Spec.Config = nil, ""
	d.Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "infra"}
	return d
}

// staticSeed is a seed whose Secret has the static credentials of the binding.
func staticSeed(t *testing.T) *world {
	w := newSeed(t)
	w.data = map[string][]byte{"id": []byte("AKIA"), "key": []byte("s3cret")}
	w.all = append(w.all, dataDelivery("d1"))
	w.followAll()
	return w
}

// followAll has the agent look at the Secret as often as its events would.
func (w *world) followAll() {
	for range 4 {
		w.deliver(cloudprovider)
		w.look(cloudprovider)
	}
}

func (w *world) wantKeys(what string, want ...string) {
	w.t.Helper()
	got := slices.Sorted(maps.Keys(w.secret(cloudprovider).Data))
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("keys, %s (-want +got):\n%s", what, diff)
	}
}

// The Secret of an object follows its binding from a static key to an identity and back, and has one of both at a time.
func TestStaticCredentialsOfAContextObject(t *testing.T) {
	w := staticSeed(t)
	got := w.secret(cloudprovider)
	if _, named := got.Annotations[v1alpha1.AnnotationName]; named || got.Annotations[v1alpha1.AnnotationBinding] != "infra" || got.Annotations[v1alpha1.AnnotationNamespace] != "garden-local" ||
		got.Annotations[v1alpha1.AnnotationContextObject] != fooObject || got.Labels[v1alpha1.LabelProvider] != "aws" || got.Annotations[v1alpha1.AnnotationCopiedKeys] != "garden-local/infra:id,key" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	w.wantKeys("static", "id", "key")
	if w.dataFor == nil || w.dataFor.Kind != "Shoot" || w.dataFor.UID != "54d09554-6a68-4f46-a23a-e3592385d820" {
		t.Errorf("data was requested for %v", w.dataFor)
	}

	w.all[0] = delivery("d1")
	w.deliver(cloudprovider)
	w.wantKeys("before the data is taken out", "id", "key")
	w.look(cloudprovider)
	w.wantKeys("right after a flip")
	w.followAll()
	w.wantKeys("by identity", "config", "token")

	w.pass(time.Minute)
	w.all[0] = dataDelivery("d1")
	w.followAll()
	w.wantKeys("and back", "id", "key")
	if got := w.secret(cloudprovider).Annotations; got[v1alpha1.AnnotationName] != "" || got[v1alpha1.AnnotationInputs] != "" || got[v1alpha1.AnnotationRenewTimestamp] != "" {
		t.Errorf("annotations %v", got)
	}
	if events := w.allEvents(); events != "" || w.state() != contexts.Delivered {
		t.Errorf("%s, Events:\n%s", w.state(), events)
	}

	// Without consent the Secret stays, and keeps its token until that expires.
	w.all[0] = delivery("d1")
	w.followAll()
	w.pass(10 * time.Second)
	w.all[0], w.data, w.dataErr = dataDelivery("d1"), nil, apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("no consent"))
	for range 8 {
		w.pass(time.Second)
		w.followAll()
	}
	w.wantKeys("without consent", "config", "token")
	if events := w.allEvents(); !strings.Contains(events, "DataRefused") {
		t.Errorf("Events:\n%s", events)
	}
}

// Static credentials go within ten seconds with their reference and their consent, whatever else is wrong.
func TestStaticCredentialsOfAContextObjectGo(t *testing.T) {
	refuse := func(w *world) {
		w.data, w.dataErr = nil, apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("the context object does not refer to the binding"))
	}
	unplaced := func() *identityv1alpha1.ContextDelivery {
		d := delivery("d9")
		d.Spec.Secret, d.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "secretName: no such key"
		return d
	}
	for name, change := range map[string]func(*world){
		"the server refuses": refuse,
		"the binding refers to an identity with a problem": func(w *world) {
			refuse(w)
			w.all[0] = delivery("d1")
			w.all[0].Spec.CredentialsBinding = dataDelivery("d1").Spec.CredentialsBinding
			w.all[0].Spec.Config, w.all[0].Spec.Provider, w.all[0].Spec.Problem = "", "", "WorkloadIdentity garden-local/banana-testing does not exist"
		},
		"the cluster may not have it": func(w *world) {
			refuse(w)
			w.all[0].Spec.Problem = "WorkloadCluster east may not have data"
		},
		"it is not known which Secrets the object needs": func(w *world) {
			refuse(w)
			w.all[0] = unplaced()
		},
		"the namespace has lost its label": func(w *world) { w.relabel(nil) },
		"the same, and a flip": func(w *world) {
			w.relabel(nil)
			w.all[0] = delivery("d1")
		},
		"another binding": func(w *world) {
			refuse(w)
			w.all[0].Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "other"}
		},
		"no delivery": func(w *world) { w.all = nil },
		"the same, and a finalizer": func(w *world) {
			w.edit(cloudprovider, func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} })
			w.all = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := staticSeed(t)
			change(w)
			for range 10 {
				w.follow(cloudprovider)
				w.pass(time.Second)
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
	for name, change := range map[string]func(*world){
		"nothing is known after a start": func(w *world) { w.unknown, w.all, w.dataErr = true, nil, errors.New("no route to host") },
		"no answer":                      func(w *world) { w.dataErr = errors.New("no route to host") },
		"the place is not known, and the data is given": func(w *world) { w.all[0] = unplaced() },
	} {
		w := staticSeed(t)
		change(w)
		for range 30 {
			w.follow(cloudprovider)
			w.pass(time.Second)
		}
		w.wantKeys(name, "id", "key")
	}
}

// Other software may deliver static credentials, as Gardener does: its Secrets are left alone, and no Event has people look.
func TestStaticCredentialsOfOthers(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: seedNamespace, Name: "cloudprovider"}, Data: map[string][]byte{"accessKey": []byte("static")}}
	for name, start := range map[string]func() *world{
		"a Secret": func() *world { return newSeed(t, theirs.DeepCopy()) },
		"a labeled Secret": func() *world {
			labeled := theirs.DeepCopy()
			labeled.Labels = map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}
			return newSeed(t, labeled)
		},
		"no label": func() *world {
			w := newSeed(t)
			w.relabel(nil)
			return w
		},
	} {
		w := start()
		w.data, w.all = map[string][]byte{"id": nil}, append(w.all, dataDelivery("d1"))
		before := w.exists(cloudprovider)
		w.deliver(cloudprovider)
		if events := w.allEvents(); events != "" || w.exists(cloudprovider) != before || w.state() != "" {
			t.Errorf("%s: %s, Events: %s", name, w.state(), events)
		}
		if before {
			w.wantKeys(name, "accessKey")
		}
	}
}
