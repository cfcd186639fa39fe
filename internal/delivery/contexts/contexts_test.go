package contexts_test

import (
	"errors"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// The Secret is that of the document's sample: config at once, then the token.
func TestSecretOfAContextObject(t *testing.T) {
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.deliver(cloudprovider)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: seedNamespace, Name: "cloudprovider",
			Labels: map[string]string{
				"authentication.gardener.cloud/purpose":                   "workload-identity-token-requestor",
				"workloadidentity.authentication.gardener.cloud/provider": "aws",
				"velero.io/exclude-from-backup":                           "true",
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
	got := w.Secret(cloudprovider)
	got.ResourceVersion = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("before its token (-want +got):\n%s", diff)
	}
	w.Look(cloudprovider)
	got = w.Secret(cloudprovider)
	if token := secrets.Stored(got); token == nil || token.Subject != "sub:u1" || string(got.Data["config"]) != string(want.Data["config"]) {
		t.Errorf("the Secret holds %+v and %q", token, got.Data["config"])
	}
	if len(w.Tokens) != 1 || w.Tokens[0].Context == nil || w.Tokens[0].Context.Kind != "Shoot" || w.Tokens[0].Context.UID != "54d09554-6a68-4f46-a23a-e3592385d820" || w.Tokens[0].Binding.Name != "" {
		t.Errorf("requested %+v", w.Tokens)
	}
	version := got.ResourceVersion
	w.follow(cloudprovider)
	if now := w.Secret(cloudprovider); now.ResourceVersion != version || len(w.Tokens) != 1 || w.state() != contexts.Delivered {
		t.Errorf("written again without a change: %d tokens, %s", len(w.Tokens), w.state())
	}
	if event := w.Event(); event != "" {
		t.Errorf("the Event %q", event)
	}
}

// A Secret follows its object to another identity, config and token together, and is deleted when nothing is to be delivered any more.
func TestSecretFollowsItsObject(t *testing.T) {
	w := newSeed(t)
	w.AddIdentity("fruit", "cherry", "u2").Spec.TargetSystem.Type = "gcp"
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.follow(cloudprovider)

	w.Pass(time.Minute)
	other := delivery("d1")
	other.Spec.WorkloadIdentity = &identityv1alpha1.NamespacedReference{Namespace: "fruit", Name: "cherry"}
	other.Spec.CredentialsBinding = &identityv1alpha1.NamespacedReference{Namespace: "garden-local", Name: "infra"}
	other.Spec.Provider, other.Spec.Config = "gcp", "new: config\n"
	w.Deliveries[0] = other
	w.Look(cloudprovider) // before the Secret is changed
	if len(w.Tokens) != 1 || w.Event() != "" {
		t.Errorf("%d tokens while the Secret names another identity than it should", len(w.Tokens))
	}
	w.deliver(cloudprovider)
	if got := w.Secret(cloudprovider); got.Annotations[v1alpha1.AnnotationName] != "cherry" || secrets.Stored(got).Subject != "sub:u1" || got.Labels[v1alpha1.LabelProvider] != "aws" || string(got.Data["config"]) != "apiVersion: a/v1\nkind: Config\n" {
		t.Errorf("config was replaced without the token: %s %s %v", got.Data["config"], got.Labels[v1alpha1.LabelProvider], got.Annotations)
	}
	w.Look(cloudprovider)
	got := w.Secret(cloudprovider)
	if token := secrets.Stored(got); token.Subject != "sub:u2" || got.Labels[v1alpha1.LabelProvider] != "gcp" || w.Tokens[1].Binding.String() != "garden-local/infra" {
		t.Errorf("the Secret holds a token of %s for %s, requested %+v", token.Subject, got.Labels[v1alpha1.LabelProvider], w.Tokens)
	}

	// The same object, made anew: it has another delivery into the same Secret.
	w.Pass(time.Minute)
	again := delivery("d2")
	again.Spec.ContextObject.UID = "u-anew"
	w.Deliveries = []*identityv1alpha1.ContextDelivery{again}
	w.follow(cloudprovider)
	if got := w.Secret(cloudprovider); got.Annotations[v1alpha1.AnnotationContextDelivery] != "d2" || len(w.Tokens) != 3 || w.Tokens[2].Context.UID != "u-anew" {
		t.Errorf("%v, %d tokens", got.Annotations, len(w.Tokens))
	}

	// It goes when the agent looks again, within ten seconds, and not at once.
	w.Deliveries = nil
	var waited time.Duration
	for wait := w.deliver(cloudprovider); w.exists(cloudprovider); wait = w.deliver(cloudprovider) {
		if waited += wait; wait <= 0 || waited > 10*time.Second {
			t.Fatalf("the Secret is still there, and looked at again after %s, which is %s in all", wait, waited)
		}
		w.Look(cloudprovider)
		w.Pass(wait)
	}
	if waited == 0 || len(w.Tokens) != 3 {
		t.Errorf("deleted after %s, with %d tokens", waited, len(w.Tokens))
	}
	w.Look(cloudprovider)
	w.deliver(cloudprovider)
	if n := len(w.Contexts.Ledger.Count()); n != 0 {
		t.Errorf("%d Secrets are remembered", n)
	}
}

// The longest names that there are make a Secret that an API server takes, with a token.
func TestSecretWithTheLongestNames(t *testing.T) {
	longest, namespace := strings.Repeat("n", 253), strings.Repeat("m", 63)
	w := newSeed(t)
	w.AddIdentity(namespace, longest, "u3")
	d := delivery("d1")
	d.Spec.Secret.Name = longest
	d.Spec.ContextObject.Namespace, d.Spec.ContextObject.Name = namespace, longest
	d.Spec.WorkloadIdentity = &identityv1alpha1.NamespacedReference{Namespace: namespace, Name: longest}
	d.Spec.CredentialsBinding = d.Spec.WorkloadIdentity
	w.Deliveries = append(w.Deliveries, d)
	w.follow(seedNamespace + "/" + longest)
	got := w.Secret(seedNamespace + "/" + longest)
	if errs := validation.ValidateObjectMeta(&got.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")); len(errs) > 0 {
		t.Error(errs)
	}
	if secrets.Stored(got) == nil || len(w.Tokens) != 1 || w.Tokens[0].Context.Namespace != namespace || w.Tokens[0].Context.Name != longest || w.Tokens[0].Binding.Name != longest {
		t.Errorf("requested %+v Events:\n%s", w.Tokens, w.Events())
	}
}

// While it is not known what is to be delivered, Secrets stay as they are.
func TestUnknownDeliveriesKeepSecrets(t *testing.T) {
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.follow(cloudprovider)
	version := w.Secret(cloudprovider).ResourceVersion
	for name, change := range map[string]func(){
		"an outage after a start": func() { w.DeliveriesUnknown, w.Deliveries = true, nil },
		"its place is not known": func() {
			unplaced := delivery("d9")
			unplaced.Spec.Secret, unplaced.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "secretName: no such key"
			w.DeliveriesUnknown, w.Deliveries = false, []*identityv1alpha1.ContextDelivery{unplaced}
		},
		"a problem": func() {
			broken := delivery("d1")
			broken.Spec.WorkloadIdentity, broken.Spec.Config, broken.Spec.Problem = nil, "", "WorkloadIdentity garden-local/cherry does not exist"
			w.DeliveriesUnknown, w.Deliveries = false, []*identityv1alpha1.ContextDelivery{broken}
		},
	} {
		change()
		for range 3 {
			w.follow(cloudprovider)
			w.Pass(time.Second)
		}
		if got := w.Secret(cloudprovider); got.ResourceVersion != version {
			t.Errorf("%s: the Secret was changed", name)
		}
	}
	// With a problem, the token is renewed as long as the identity cluster issues one.
	broken := delivery("d1")
	broken.Spec.WorkloadIdentity, broken.Spec.Problem = nil, "p"
	w.DeliveriesUnknown, w.Deliveries = false, []*identityv1alpha1.ContextDelivery{broken}
	w.Pass(50 * time.Minute)
	w.follow(cloudprovider)
	if len(w.Tokens) != 2 {
		t.Errorf("%d tokens, want a new one in spite of the problem", len(w.Tokens))
	}
	// An object that another one displaced for a moment has its Secret all the time.
	w.Deliveries = nil
	w.deliver(cloudprovider)
	w.Pass(time.Second)
	w.Deliveries = []*identityv1alpha1.ContextDelivery{delivery("d1")}
	w.deliver(cloudprovider)
	w.Deliveries = nil
	w.Pass(5 * time.Second)
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
		change  func(seed)
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
		"no label": {change: func(w seed) {
			w.relabel(map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled})
		}, state: contexts.NotEnabled, event: "NamespaceNotEnabled the namespace shoot--local--foo does not let Secret shoot--local--foo/cloudprovider be made or renewed: a cluster admin allows it with: kubectl label namespace shoot--local--foo identity.credence.dev/context-delivery=enabled"},
		"another value": {change: func(w seed) { w.relabel(map[string]string{v1alpha1.LabelNamespaceContexts: "true"}) }, state: contexts.NotEnabled, event: "NamespaceNotEnabled"},
		"a problem":     {change: func(w seed) { w.Deliveries[0].Spec.Problem = "no such identity" }, state: contexts.Problem, event: "DeliveryProblem nothing is delivered into Secret " + cloudprovider + ": no such identity"},
		"no identity":   {change: func(w seed) { w.Deliveries[0].Spec.WorkloadIdentity = nil }, state: contexts.Problem, event: "DeliveryProblem"},
		"two objects":   {change: func(w seed) { w.Deliveries = append(w.Deliveries, delivery("d2")) }, state: contexts.Conflict, event: "DeliveryConflict"},
		"problems": {change: func(w seed) {
			w.Deliveries[0].Spec.Problem = "no such identity"
			w.Deliveries = append(w.Deliveries, delivery("d2"))
			w.Deliveries[1].Spec.Problem = "created later"
		}, state: contexts.Problem, event: "DeliveryProblem nothing is delivered into Secret " + cloudprovider + ": no such identity"},
		"two objects, and another Secret": {objects: []client.Object{foreign(nil)}, change: func(w seed) { w.Deliveries = append(w.Deliveries, delivery("d2")) }, state: contexts.Conflict, event: "DeliveryConflict"},
		"no right yet":                    {change: func(w seed) { w.Unserved = seedNamespace }, state: contexts.Waiting},
		"no right":                        {change: func(w seed) { w.Unserved = seedNamespace; w.deliver(cloudprovider) }, state: contexts.Waiting, event: "NamespaceNotBound the agent may not read Secrets of the namespace " + seedNamespace},
		"refused writes": {change: func(w seed) {
			w.Uncreatable = apierrors.NewForbidden(corev1.Resource("secrets"), "cloudprovider", errors.New("a policy"))
		}, state: contexts.NotWritten, event: "WriteFailed"},
	} {
		w := newSeed(t, test.objects...)
		w.Deliveries = append(w.Deliveries, delivery("d1"))
		if test.change != nil {
			test.change(w)
		}
		before := w.exists(cloudprovider)
		for range 3 {
			w.deliver(cloudprovider)
		}
		if before {
			w.Look(cloudprovider)
			if got := w.Secret(cloudprovider); got.ResourceVersion != "999" {
				t.Errorf("%s: the Secret was changed", name)
			}
		}
		if w.exists(cloudprovider) != before || w.state() != test.state || len(w.Tokens) != 0 {
			t.Errorf("%s: exists %v, %s, %d tokens", name, w.exists(cloudprovider), w.state(), len(w.Tokens))
		}
		if event := w.Event(); !strings.Contains(event, test.event) || (event == "") != (test.event == "") {
			t.Errorf("%s: the Event %q, want %q", name, event, test.event)
		}
		if event := w.Event(); event != "" && !strings.Contains(event, "no tokens are written") {
			t.Errorf("%s: one more Event %q", name, event)
		}
	}
}

// Where not even the Secret is known, the object has the reason: once, and not while the object may be on its way to its place.
func TestUnplacedDeliveryIsReportedOnce(t *testing.T) {
	w := newSeed(t)
	event := func() string { return w.IdentityEvent() + w.Event() }
	unplaced := delivery("d9")
	unplaced.Spec.Secret, unplaced.Spec.Problem = identityv1alpha1.DeliveredSecret{}, "the Secret of reference dns is not known: deliver.namespace: no such key: status"
	w.Deliveries = append(w.Deliveries, unplaced)
	if keys := w.Contexts.Unplaced(); len(keys) != 1 || keys[0] != (types.NamespacedName{Name: "d9"}) {
		t.Errorf("looked at are %v", keys)
	}
	for range 2 {
		wait := w.deliver("/d9")
		if got := event(); wait != time.Minute || got != "" {
			t.Fatalf("looked at again after %s, with the Event %q", wait, got)
		}
		w.Deliveries = nil // it has its place, and loses it again
		w.deliver("/d9")
		w.Pass(time.Minute)
		w.Deliveries = append(w.Deliveries, unplaced)
	}
	w.deliver("/d9")
	w.Pass(time.Minute)
	for range 2 {
		w.deliver("/d9")
	}
	if got := event(); got != "Warning DeliveryProblem "+unplaced.Spec.Problem {
		t.Errorf("the Event %q", got)
	}
	if got := event(); got != "" {
		t.Errorf("one more Event %q", got)
	}
	if count := w.Contexts.Ledger.Count(); count[contexts.Problem] != 1 {
		t.Errorf("counted %v", count)
	}
	w.Deliveries = nil
	if w.deliver("/d9"); len(w.Contexts.Ledger.Count()) != 0 {
		t.Errorf("remembered are %v", w.Contexts.Ledger.Count())
	}
}

// A Secret that is not needed any more, and that the agent may not delete, is reported once.
func TestSecretThatCannotBeDeletedIsReportedOnce(t *testing.T) {
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.deliver(cloudprovider)
	w.Unserved, w.Deliveries = seedNamespace, nil
	w.deliver(cloudprovider)
	if event := w.Event(); !strings.Contains(event, "NamespaceNotBound Secret "+cloudprovider+" may still be there") {
		t.Errorf("the Event %q", event)
	}
	w.deliver(cloudprovider)
	if event := w.Event(); event != "" {
		t.Errorf("one more Event %q", event)
	}
}

// Of two objects that need one Secret, it follows the one for which the identity cluster has no problem.
func TestSecretFollowsTheObjectWithoutAProblem(t *testing.T) {
	w := newSeed(t)
	young, old := delivery("d1"), delivery("d2")
	old.Spec.ContextObject.Name = "old"
	w.Deliveries = append(w.Deliveries, young)
	madeFor := func(want string) {
		t.Helper()
		w.deliver(cloudprovider)
		if got := w.Secret(cloudprovider).Annotations[v1alpha1.AnnotationContextDelivery]; got != want {
			t.Errorf("the Secret is made for %s, want %s", got, want)
		}
	}
	madeFor("d1")
	w.Deliveries = append(w.Deliveries, old)
	madeFor("d1") // until it is known which of them keeps it
	young.Spec.Problem = "another object, created earlier, has it"
	madeFor("d2")
	old.Spec.Problem = "no such identity"
	madeFor("d2")

	none := newSeed(t)
	old.Spec.Problem = ""
	none.Deliveries = append(none.Deliveries, young, old)
	none.deliver(cloudprovider)
	if got := none.Secret(cloudprovider).Annotations[v1alpha1.AnnotationContextDelivery]; got != "d2" {
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
		w.AddIdentity("garden-local", "cherry", "u2")
		w.Deliveries = append(w.Deliveries, delivery("d1"))
		w.Look(secret.Namespace + "/" + secret.Name)
		if len(w.Tokens) != 0 {
			t.Errorf("%s: %+v", name, w.Tokens)
		}
	}
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.follow(cloudprovider)
	w.relabel(nil)
	w.Pass(50 * time.Minute)
	w.follow(cloudprovider)
	if len(w.Tokens) != 1 || !w.exists(cloudprovider) {
		t.Errorf("%d tokens without the label", len(w.Tokens))
	}
	// The agent still removes what it has made.
	w.Deliveries = nil
	w.deliver(cloudprovider)
	w.Pass(5 * time.Second)
	if w.deliver(cloudprovider); w.exists(cloudprovider) {
		t.Error("a Secret that none needs stays without the label")
	}
	// An agent that follows no deliveries fills none.
	w = newSeed(t, copied("cloudprovider", nil))
	w.Secrets.Contexts = nil
	if w.Look(cloudprovider); len(w.Tokens) != 0 || !strings.Contains(w.Event(), "has not joined one") {
		t.Errorf("%d tokens of an agent that has not joined", len(w.Tokens))
	}
}

// A request for new tokens on the object renews each of its Secrets once, also across a restart.
func TestRequestOnAnObjectRenewsOnce(t *testing.T) {
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.Deliveries[0].Spec.Renewal = "before"
	tokens := func(want int, when string) {
		t.Helper()
		for range 3 {
			w.Pass(20 * time.Second)
			w.follow(cloudprovider)
		}
		if len(w.Tokens) != want {
			t.Errorf("%s: %d tokens, want %d", when, len(w.Tokens), want)
		}
	}
	tokens(1, "made while a request is there")
	for i, renewal := range []string{"a", "", "a", "b"} {
		w.Deliveries[0].Spec.Renewal = renewal
		w.Contexts.Ledger.Forget(types.NamespacedName{Namespace: seedNamespace, Name: "cloudprovider"})
		tokens([]int{2, 2, 2, 3}[i], fmt.Sprintf("request %d, %q", i, renewal))
	}
	if got := w.Secret(cloudprovider); got.Annotations[v1alpha1.AnnotationOperation] != "" || got.Annotations[v1alpha1.AnnotationContextRenewal] != "b" {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// A Secret that is deleted, or edited where no policy keeps users from it, comes back as it was.
func TestChangedSecretIsRestored(t *testing.T) {
	w := newSeed(t)
	w.Deliveries = append(w.Deliveries, delivery("d1"))
	w.follow(cloudprovider)
	w.Delete(cloudprovider)
	w.Look(cloudprovider)
	w.follow(cloudprovider)
	if len(w.Tokens) != 2 {
		t.Fatalf("%d tokens", len(w.Tokens))
	}
	w.Pass(time.Minute)
	w.Edit(cloudprovider, func(s *corev1.Secret) {
		s.Annotations[v1alpha1.AnnotationName] = "cherry"
		s.Data["config"] = []byte("mallory: yes\n")
		s.Data["theirs"] = []byte("kept")
		delete(s.Labels, v1alpha1.LabelProvider)
	})
	w.follow(cloudprovider)
	got := w.Secret(cloudprovider)
	if got.Annotations[v1alpha1.AnnotationName] != "banana-testing" || string(got.Data["config"]) != "apiVersion: a/v1\nkind: Config\n" || got.Labels[v1alpha1.LabelProvider] != "aws" || string(got.Data["theirs"]) != "kept" {
		t.Errorf("it has become %v %q", got.Annotations, got.Data)
	}
}
