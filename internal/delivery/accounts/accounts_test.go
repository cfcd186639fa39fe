package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// newAccount is a World with the service account ns/web, which names identities that exist.
func newAccount(t testing.TB, identities ...string) *deliverytest.World {
	w := deliverytest.New(t, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", strings.Join(identities, ",")))
	for i, identity := range identities {
		w.AddIdentity("ns", identity, "u"+strconv.Itoa(i+1))
	}
	return w
}

// nameIdentities changes which identities the account names.
func nameIdentities(w *deliverytest.World, identities string) {
	w.EditAccount("ns/web", func(a *corev1.ServiceAccount) { a.Annotations[v1alpha1.AnnotationAccountIdentities] = identities })
}

// requestTokens has the account request new tokens.
func requestTokens(w *deliverytest.World) {
	w.EditAccount("ns/web", func(a *corev1.ServiceAccount) {
		a.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
	})
}

// requestsTokens reports whether the account still has the annotation that requests new tokens.
func requestsTokens(w *deliverytest.World) bool {
	_, there := w.ServiceAccount("ns/web").Annotations[v1alpha1.AnnotationOperation]
	return there
}

func secretNames(t testing.TB, w *deliverytest.World) []string {
	t.Helper()
	var list corev1.SecretList
	testkit.Must(t, w.Client.List(t.Context(), &list, client.InNamespace("ns")))
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	return names
}

func TestEachIdentityOfAnAccountHasASecret(t *testing.T) {
	w := newAccount(t, "banana", "cherry")
	w.LookAtAccount("ns/web")
	key := "ns/" + tokensecret.NameFor("web", "banana")
	if names := secretNames(t, w); len(names) != 2 {
		t.Fatalf("Secrets %v, want one for each identity", names)
	}
	w.Look(key)
	if len(w.Tokens) != 1 || w.Tokens[0].Context == nil || w.Tokens[0].Context.Name != "web" || w.Tokens[0].Context.UID != "uid-web" {
		t.Errorf("requested %+v, want a token with the service account as context", w.Tokens)
	}
	// A right of all who are authenticated is not one of every account.
	reviewed := authority.Subject{Name: "system:serviceaccount:ns:web", UID: "uid-web", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns"}}
	for _, subject := range w.Reviewed {
		if diff := cmp.Diff(reviewed, subject); diff != "" {
			t.Errorf("reviewed (-want +got):\n%s", diff)
		}
	}
	if len(w.Reviewed) == 0 {
		t.Error("the right of the account is not reviewed")
	}
	// A second look makes nothing twice; an identity that is not wanted any more loses its Secret.
	w.LookAtAccount("ns/web")
	nameIdentities(w, "cherry")
	w.LookAtAccount("ns/web")
	w.Pass(accounts.ReleasedLook)
	w.LookAtAccount("ns/web")
	if names := secretNames(t, w); len(names) != 1 || names[0] != tokensecret.NameFor("web", "cherry") {
		t.Errorf("Secrets %v, want that of cherry", names)
	}
	// An annotation that cannot be read is not an order to delete.
	nameIdentities(w, "cherry,,x")
	if after := w.LookAtAccount("ns/web"); after <= 0 {
		t.Error("not looked at again: the state of the account would stay when the annotation goes")
	}
	if event := w.Event(); len(secretNames(t, w)) != 1 || !strings.Contains(event, "InvalidAnnotation") {
		t.Errorf("Secrets %v, Event %q", secretNames(t, w), event)
	}
	// Nor does its token expire.
	w.Tokens = nil
	if w.Look("ns/" + tokensecret.NameFor("web", "cherry")); len(w.Tokens) != 1 {
		t.Errorf("%d tokens were requested, want one", len(w.Tokens))
	}
	w.EditAccount("ns/web", func(a *corev1.ServiceAccount) { delete(a.Annotations, v1alpha1.AnnotationAccountIdentities) })
	w.LookAtAccount("ns/web")
	w.Pass(accounts.ReleasedLook)
	w.LookAtAccount("ns/web")
	if names := secretNames(t, w); len(names) != 0 {
		t.Errorf("Secrets %v, want none", names)
	}
}

func TestSecretsThatAreNotCreated(t *testing.T) {
	key := tokensecret.NameFor("web", "banana")
	for name, test := range map[string]struct {
		objects []client.Object
		change  func(*deliverytest.World)
		want    string
	}{
		"no such identity": {nil, func(w *deliverytest.World) { delete(w.Identities, "ns/banana") }, "IdentityMissing WorkloadIdentity ns/banana does not exist"},
		"not allowed":      {nil, func(w *deliverytest.World) { w.Denied["system:serviceaccount:ns:web"] = true }, "UseDenied service account ns/web may not use the WorkloadIdentity ns/banana, so it gets no tokens: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it, for instance with: kubectl create rolebinding"},
		"agent forbidden": {nil, func(w *deliverytest.World) {
			delete(w.Identities, "ns/banana")
			w.Down = apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "banana", nil)
		}, "IdentityUnreadable the agent may not get tokens"},
		"name taken":                         {[]client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key}}}, nil, "SecretNotOwned the Secret " + key},
		"name taken by one that is labelled": {[]client.Object{deliverytest.LabeledSecret("ns", key, "banana")}, nil, "SecretNotOwned the Secret " + key},
	} {
		t.Run(name, func(t *testing.T) {
			w := deliverytest.New(t, append(test.objects, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana"))...)
			w.AddIdentity("ns", "banana", "u1")
			if test.change != nil {
				test.change(w)
			}
			if again := w.LookAtAccount("ns/web"); again <= 0 {
				t.Error("it is not tried again")
			}
			if event := w.Event(); !strings.Contains(event, test.want) {
				t.Errorf("the Event is %q, want %q", event, test.want)
			}
			if len(secretNames(t, w)) != len(test.objects) {
				t.Errorf("Secrets %v", secretNames(t, w))
			}
		})
	}
}

func TestNoSecretsWithoutTheNamespaceLabel(t *testing.T) {
	w := deliverytest.New(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, deliverytest.Account("ns", "web", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.LookAtAccount("ns/web")
	if names := secretNames(t, w); len(names) != 0 {
		t.Errorf("Secrets %v in a namespace that is not enabled", names)
	}
}

func TestAccountRequestsNewTokens(t *testing.T) {
	w := newAccount(t, "banana", "cherry")
	w.LookAtAccount("ns/web")
	keys := []string{"ns/" + tokensecret.NameFor("web", "banana"), "ns/" + tokensecret.NameFor("web", "cherry")}
	for _, key := range keys {
		w.Look(key)
	}
	w.Pass(time.Minute)
	requestTokens(w)
	w.LookAtAccount("ns/web")
	for _, key := range keys {
		if _, ok := w.Queued[key]; !ok {
			t.Errorf("%s is not looked at", key)
		}
		w.LookAtAccount("ns/web")
		if !requestsTokens(w) {
			t.Fatalf("the annotation is gone before %s has its token", key)
		}
		w.Look(key)
	}
	w.LookAtAccount("ns/web")
	if requestsTokens(w) || len(w.Tokens) != 4 {
		t.Errorf("annotation there: %t; %d tokens were requested, want 4", requestsTokens(w), len(w.Tokens))
	}
	w.Pass(time.Minute)
	for _, key := range keys {
		w.Look(key)
	}
	if len(w.Tokens) != 4 {
		t.Errorf("%d tokens were requested, want no more", len(w.Tokens))
	}
}

// A token that was on its way when the account requested new ones does not answer the request.
func TestEarlierTokenDoesNotEndTheRequest(t *testing.T) {
	w := newAccount(t, "banana")
	w.LookAtAccount("ns/web")
	key := "ns/" + tokensecret.NameFor("web", "banana")
	w.OnPatch = func(client.Object) {
		w.OnPatch = nil
		requestTokens(w)
		w.LookAtAccount("ns/web")
	}
	w.Look(key)
	w.Pass(time.Minute)
	w.Look(key)
	if len(w.Tokens) != 2 {
		t.Errorf("%d tokens were requested, want a second one", len(w.Tokens))
	}
	w.LookAtAccount("ns/web")
	if requestsTokens(w) {
		t.Error("the annotation is still there")
	}
}

// A Secret that is deleted, as no pod mounts it any more, is not waited for.
func TestRequestEndsWithoutDeletedSecrets(t *testing.T) {
	w := newAccount(t, "banana", "cherry")
	w.LookAtAccount("ns/web")
	requestTokens(w)
	w.LookAtAccount("ns/web")
	w.Look("ns/" + tokensecret.NameFor("web", "banana"))
	nameIdentities(w, "banana")
	w.LookAtAccount("ns/web")
	if !requestsTokens(w) {
		t.Error("the annotation is gone while a pod may still have the Secret that has no new token")
	}
	w.Pass(accounts.ReleasedLook)
	w.LookAtAccount("ns/web")
	w.LookAtAccount("ns/web") // as the Secret is gone
	if requestsTokens(w) {
		t.Error("the annotation is still there: it waits for the Secret of an identity that the account does not name any more")
	}
}

// Two problems of one account are reported once each, not anew at every retry.
func TestProblemsAreReportedOnce(t *testing.T) {
	w := deliverytest.New(t, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana,cherry"))
	for range 5 {
		w.Pass(w.LookAtAccount("ns/web"))
	}
	var events []string
	for event := w.Event(); event != ""; event = w.Event() {
		events = append(events, event)
	}
	if len(events) != 2 {
		t.Errorf("%d Events, want one for each identity: %q", len(events), events)
	}
	w.Pass(failures.Again)
	w.LookAtAccount("ns/web")
	if w.Event() == "" {
		t.Error("not reported again after a while")
	}
}

// The binder takes a moment: only an account that waits for longer gets an Event, and nothing is written meanwhile.
func TestMissingRoleBindingIsReportedLater(t *testing.T) {
	w := newAccount(t, "banana")
	w.Unserved = "ns"
	for try := 1; try <= accounts.Patience; try++ {
		wait := w.LookAtAccount("ns/web")
		if wait <= 0 {
			t.Fatalf("try %d: not looked at again", try)
		}
		event := w.Event()
		if reported := strings.Contains(event, "NamespaceNotBound") && strings.Contains(event, "credence-server binder"); reported != (try == accounts.Patience) {
			t.Errorf("try %d: the Event is %q", try, event)
		}
		w.Pass(wait)
	}
	if names := secretNames(t, w); len(names) > 0 {
		t.Errorf("Secrets %v were created", names)
	}
	w.Unserved = ""
	w.LookAtAccount("ns/web")
	if names := secretNames(t, w); len(names) != 1 {
		t.Errorf("once it is served there are Secrets %v", names)
	}
}

// The agent does not see that a ResourceQuota was raised: it tries again within 20 seconds, however often one has refused the Secret.
func TestQuotaRefusalsAreRepeatedSoon(t *testing.T) {
	for message, longest := range map[string]time.Duration{
		"exceeded quota: small, requested: count/secrets=1, used: count/secrets=2, limited: count/secrets=2": 20 * time.Second,
		"a policy": 5 * time.Minute,
	} {
		w := newAccount(t, "banana")
		w.Uncreatable = apierrors.NewForbidden(corev1.Resource("secrets"), "credence-token-web", errors.New(message))
		var wait time.Duration
		for range 12 {
			wait = w.LookAtAccount("ns/web")
			w.Pass(wait)
		}
		if wait > longest || wait < longest/2 {
			t.Errorf("%s: tried again after %s, want at most %s", message, wait, longest)
		}
	}
}

// sentReports are reports of identities, in words.
type sentReports chan string

func (s sentReports) Report(_ context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error {
	s <- fmt.Sprintf("%s %s: %d of %d, %+v", name, uid, report.Delivered, report.Secrets, report.Failure)
	return nil
}

// An identity shows why a Secret with its tokens can't be made, as pods wait for that, until no account needs the Secret.
func TestMissingSecretIsReported(t *testing.T) {
	sent := make(sentReports, 8)
	w := newAccount(t, "banana", "cherry")
	w.Uncreatable = apierrors.NewForbidden(corev1.Resource("secrets"), "credence-token-web", errors.New("exceeded quota: small"))
	w.Accounts.Reports = reports.New(sent, 0, w.Clock, slog.New(slog.DiscardHandler))
	go w.Accounts.Reports.Run(t.Context())
	w.LookAtAccount("ns/web")
	for range 2 {
		if got := <-sent; !strings.Contains(got, "0 of 1, &{Reason:SecretNotCreated Message:Secret ns/credence-token-web-") || !strings.Contains(got, "exceeded quota: small") {
			t.Errorf("reported %s", got)
		}
	}
	w.Pass(2 * time.Minute)
	nameIdentities(w, "banana")
	w.LookAtAccount("ns/web")
	if got, want := <-sent, "ns/cherry u2: 0 of 0, <nil>"; got != want {
		t.Errorf("reported %s, want %s", got, want)
	}
}
