package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
)

func enabledNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}}}
}

func account(namespace, name, identities string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: identities},
	}}
}

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

func (w *world) lookAtAccount() time.Duration {
	w.t.Helper()
	result, err := w.accounts.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: web})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) secretNames() []string {
	w.t.Helper()
	var list corev1.SecretList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace("ns")); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	return names
}

func (w *world) editAccount(change func(*corev1.ServiceAccount)) {
	w.t.Helper()
	var a corev1.ServiceAccount
	if err := w.client.Get(w.t.Context(), web, &a); err != nil {
		w.t.Fatal(err)
	}
	change(&a)
	if err := w.client.Update(w.t.Context(), &a); err != nil {
		w.t.Fatal(err)
	}
}

// requestsTokens reports whether the account still has the annotation that requests new tokens.
func (w *world) requestsTokens() bool {
	w.t.Helper()
	var a corev1.ServiceAccount
	if err := w.client.Get(w.t.Context(), web, &a); err != nil {
		w.t.Fatal(err)
	}
	_, there := a.Annotations[v1alpha1.AnnotationOperation]
	return there
}

func TestSecretsOfAnAccount(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana,cherry"))
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	w.lookAtAccount()
	key := "ns/" + tokensecret.NameFor("web", "banana")
	if names := w.secretNames(); len(names) != 2 {
		t.Fatalf("Secrets %v, want one for each identity", names)
	}
	w.look(key)
	if len(w.tokens) != 1 || w.tokens[0].context == nil || w.tokens[0].context.Name != "web" || w.tokens[0].context.UID != "uid-web" {
		t.Errorf("requested %+v, want a token with the service account as context", w.tokens)
	}
	// A right of all who are authenticated is not one of every account.
	reviewed := authority.Subject{Name: "system:serviceaccount:ns:web", UID: "uid-web", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns"}}
	for _, subject := range w.reviewed {
		if diff := cmp.Diff(reviewed, subject); diff != "" {
			t.Errorf("reviewed (-want +got):\n%s", diff)
		}
	}
	if len(w.reviewed) == 0 {
		t.Error("the right of the account is not reviewed")
	}
	// A second look makes nothing twice; an identity that is not wanted any more loses its Secret.
	w.lookAtAccount()
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "cherry" })
	w.lookAtAccount()
	w.pass(accounts.ReleasedLook)
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 1 || names[0] != tokensecret.NameFor("web", "cherry") {
		t.Errorf("Secrets %v, want that of cherry", names)
	}
	// An annotation that cannot be read is not an order to delete.
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "cherry,,x" })
	if after := w.lookAtAccount(); after <= 0 {
		t.Error("not looked at again: the state of the account would stay when the annotation goes")
	}
	if event := w.event(); len(w.secretNames()) != 1 || !strings.Contains(event, "InvalidAnnotation") {
		t.Errorf("Secrets %v, Event %q", w.secretNames(), event)
	}
	// Nor does its token expire.
	w.tokens = nil
	if w.look("ns/" + tokensecret.NameFor("web", "cherry")); len(w.tokens) != 1 {
		t.Errorf("%d tokens were requested, want one", len(w.tokens))
	}
	w.editAccount(func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
	w.lookAtAccount()
	w.pass(accounts.ReleasedLook)
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 0 {
		t.Errorf("Secrets %v, want none", names)
	}
}

func TestInAnotherClusterThereIsNoContext(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.requestor.NamesAccounts = false
	w.lookAtAccount()
	w.look("ns/" + tokensecret.NameFor("web", "banana"))
	if len(w.tokens) != 1 || w.tokens[0].context != nil {
		t.Errorf("requested %+v, want a token without context", w.tokens)
	}
}

func TestWhatKeepsAnAccountFromItsSecrets(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, test := range map[string]struct {
		objects []client.Object
		change  func(*world)
		want    string
	}{
		"no such identity": {nil, func(w *world) { delete(w.identities, "ns/banana") }, "IdentityMissing WorkloadIdentity ns/banana does not exist"},
		"not allowed":      {nil, func(w *world) { w.denied["system:serviceaccount:ns:web"] = true }, "UseDenied service account ns/web may not use the WorkloadIdentity ns/banana, so it gets no tokens: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it, for instance with: kubectl create rolebinding"},
		"agent forbidden": {nil, func(w *world) {
			delete(w.identities, "ns/banana")
			w.down = apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "banana", nil)
		}, "IdentityUnreadable the agent may not get tokens"},
		"name taken":                         {[]client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key}}}, nil, "SecretNotOwned the Secret " + key},
		"name taken by one that is labelled": {[]client.Object{labelled("ns", key, "banana")}, nil, "SecretNotOwned the Secret " + key},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.objects, enabledNamespace("ns"), account("ns", "web", "banana"))...)
			w.addIdentity("ns", "banana", "u1")
			if test.change != nil {
				test.change(w)
			}
			if again := w.lookAtAccount(); again <= 0 {
				t.Error("it is not tried again")
			}
			if event := w.event(); !strings.Contains(event, test.want) {
				t.Errorf("the Event is %q, want %q", event, test.want)
			}
			if len(w.secretNames()) != len(test.objects) {
				t.Errorf("Secrets %v", w.secretNames())
			}
		})
	}
}

func TestNamespaceWithoutTheLabel(t *testing.T) {
	w := newWorld(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 0 {
		t.Errorf("Secrets %v in a namespace that is not enabled", names)
	}
}

// A Secret that names a service account as its context gets tokens only as the one that the agent keeps for this account.
func TestForgedSecretsGetNoToken(t *testing.T) {
	real := accounts.NewSecret(&metav1.PartialObjectMetadata{ObjectMeta: account("ns", "web", "banana").ObjectMeta}, &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "banana"}, Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: "aws"}}})
	for name, forge := range map[string]func(*corev1.Secret){
		"another name":      func(s *corev1.Secret) { s.Name = "mine" },
		"no owner":          func(s *corev1.Secret) { s.OwnerReferences = nil },
		"owner of before":   func(s *corev1.Secret) { s.OwnerReferences[0].UID = "uid-before" },
		"another namespace": func(s *corev1.Secret) { s.Namespace = "evil" },
		"identity of another namespace": func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationNamespace] = "other"
		},
		"account that does not name it": func(s *corev1.Secret) {
			s.Name, s.Annotations[v1alpha1.AnnotationName] = tokensecret.NameFor("web", "cherry"), "cherry"
		},
		"account that was created anew": func(s *corev1.Secret) {
			s.OwnerReferences[0].UID = "uid-old"
			s.Annotations[v1alpha1.AnnotationContextObject] = strings.ReplaceAll(s.Annotations[v1alpha1.AnnotationContextObject], "uid-web", "uid-old")
		},
	} {
		t.Run(name, func(t *testing.T) {
			forged := real.DeepCopy()
			forge(forged)
			w := newWorld(t, forged, enabledNamespace("ns"), enabledNamespace("evil"), account("ns", "web", "banana"))
			for _, identity := range [][2]string{{"ns", "banana"}, {"ns", "cherry"}, {"other", "banana"}} {
				w.addIdentity(identity[0], identity[1], "u-"+identity[0]+identity[1])
			}
			w.look(forged.Namespace + "/" + forged.Name)
			if len(w.tokens) != 0 {
				t.Errorf("requested %+v", w.tokens)
			}
			if event := w.event(); !strings.Contains(event, "SecretNotOwned") {
				t.Errorf("the Event is %q", event)
			}
		})
	}
	w := newWorld(t, real, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.look("ns/" + real.Name)
	if len(w.tokens) != 1 {
		t.Error("the real one gets none either")
	}
}

func TestUseWithdrawn(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.lookAtAccount()
	key := "ns/" + tokensecret.NameFor("web", "banana")
	w.look(key)
	w.denied["system:serviceaccount:ns:web"] = true
	w.pass(45 * time.Minute)
	w.look(key)
	if len(w.tokens) != 1 || secrets.Stored(w.secret(key)) == nil {
		t.Errorf("%d tokens were requested, want no second", len(w.tokens))
	}
	// On the account and on the Secret.
	for range 2 {
		if event := w.event(); !strings.Contains(event, "UseDenied") {
			t.Errorf("the Event is %q", event)
		}
	}
}

func TestAnAccountAsksForNewTokens(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana,cherry"))
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	w.lookAtAccount()
	keys := []string{"ns/" + tokensecret.NameFor("web", "banana"), "ns/" + tokensecret.NameFor("web", "cherry")}
	for _, key := range keys {
		w.look(key)
	}
	w.pass(time.Minute)
	w.editAccount(func(a *corev1.ServiceAccount) {
		a.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
	})
	w.lookAtAccount()
	for _, key := range keys {
		if _, ok := w.queued[key]; !ok {
			t.Errorf("%s is not looked at", key)
		}
		w.lookAtAccount()
		if !w.requestsTokens() {
			t.Fatalf("the annotation is gone before %s has its token", key)
		}
		w.look(key)
	}
	w.lookAtAccount()
	if w.requestsTokens() || len(w.tokens) != 4 {
		t.Errorf("annotation there: %t; %d tokens were requested, want 4", w.requestsTokens(), len(w.tokens))
	}
	w.pass(time.Minute)
	for _, key := range keys {
		w.look(key)
	}
	if len(w.tokens) != 4 {
		t.Errorf("%d tokens were requested, want no more", len(w.tokens))
	}
}

// A token that was on its way when the account requested new ones does not answer the request.
func TestATokenOnItsWayAnswersNoRequest(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.lookAtAccount()
	key := "ns/" + tokensecret.NameFor("web", "banana")
	w.onPatch = func(client.Object) {
		w.onPatch = nil
		w.editAccount(func(a *corev1.ServiceAccount) {
			a.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
		})
		w.lookAtAccount()
	}
	w.look(key)
	w.pass(time.Minute)
	w.look(key)
	if len(w.tokens) != 2 {
		t.Errorf("%d tokens were requested, want a second one", len(w.tokens))
	}
	w.lookAtAccount()
	if w.requestsTokens() {
		t.Error("the annotation is still there")
	}
}

// A Secret that is deleted, as no pod mounts it any more, is not waited for.
func TestAnAskEndsWithoutSecretsThatAreGone(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana,cherry"))
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	w.lookAtAccount()
	w.editAccount(func(a *corev1.ServiceAccount) {
		a.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
	})
	w.lookAtAccount()
	w.look("ns/" + tokensecret.NameFor("web", "banana"))
	w.editAccount(func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = "banana" })
	w.lookAtAccount()
	if !w.requestsTokens() {
		t.Error("the annotation is gone while a pod may still have the Secret that has no new token")
	}
	w.pass(accounts.ReleasedLook)
	w.lookAtAccount()
	w.lookAtAccount() // as the Secret is gone
	if w.requestsTokens() {
		t.Error("the annotation is still there: it waits for the Secret of an identity that the account does not name any more")
	}
}

// Two problems of one account are reported once each, not anew at every retry.
func TestProblemsAreToldOnce(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana,cherry"))
	for range 5 {
		w.pass(w.lookAtAccount())
	}
	var events []string
	for event := w.event(); event != ""; event = w.event() {
		events = append(events, event)
	}
	if len(events) != 2 {
		t.Errorf("%d Events, want one for each identity: %q", len(events), events)
	}
	w.pass(failures.Again)
	w.lookAtAccount()
	if w.event() == "" {
		t.Error("not reported again after a while")
	}
}
