package secrets_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// boundTo are bindings that refer to identities; an empty name refers to a Secret.
type boundTo map[string]string

func (b boundTo) Get(_ context.Context, namespace, name string) (*v1alpha1.CredentialsBinding, error) {
	to, ok := b[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("credentialsbindings"), name)
	}
	binding := &v1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if to == "" {
		binding.SecretRef = &v1alpha1.CredentialsReference{Namespace: namespace, Name: "static"}
	} else {
		binding.WorkloadIdentityRef = &v1alpha1.CredentialsReference{Namespace: namespace, Name: to}
	}
	return binding, nil
}

func (boundTo) Each(func(*v1alpha1.CredentialsBinding)) {}

func (boundTo) Retain(func(string) bool) {}

// answers are bindings whose reads take a while, and have errors, in turn.
type answers struct {
	boundTo
	world *deliverytest.World
	take  time.Duration
	errs  []error
}

func (a *answers) Get(ctx context.Context, namespace, name string) (*v1alpha1.CredentialsBinding, error) {
	a.world.Pass(a.take)
	err := a.errs[0]
	if a.errs = append(a.errs[1:], err); err != nil {
		return nil, err
	}
	return a.boundTo.Get(ctx, namespace, name)
}

// bound is a Secret of a user's that names a binding.
func bound(namespace, name, binding string) *corev1.Secret {
	secret := deliverytest.LabeledSecret(namespace, name, "")
	delete(secret.Annotations, v1alpha1.AnnotationName)
	secret.Annotations[v1alpha1.AnnotationBinding] = binding
	return secret
}

// A Secret that names a binding has the tokens of its identity, follows it to another one, and keeps its token when it refers to none.
func TestTokenFollowsItsBinding(t *testing.T) {
	w := deliverytest.New(t, bound("ns", "s", "infra"))
	w.AddIdentity("ns", "banana", "u1")
	w.AddIdentity("ns", "cherry", "u2")
	bindings := boundTo{"ns/infra": "banana"}
	w.Secrets.Bindings = bindings
	subject := func(want string) {
		t.Helper()
		w.Look("ns/s")
		if token := secrets.Stored(w.Secret("ns/s")); token == nil || token.Subject != want {
			t.Errorf("the Secret holds %+v, want a token of %s", token, want)
		}
	}
	subject("sub:u1")
	bindings["ns/infra"] = "cherry"
	subject("sub:u2")
	for text, change := range map[string]func(){
		"does not exist": func() { delete(bindings, "ns/infra") },
	} {
		change()
		subject("sub:u2")
		if reported := w.Secrets.Ledger.Get(client.ObjectKey{Namespace: "ns", Name: "s"}).Reported; !strings.Contains(reported.Message, "CredentialsBinding ns/infra "+text) {
			t.Errorf("reported %+v, want that the binding %s", reported, text)
		}
	}
	bindings["ns/infra"] = "banana"
	w.Pass(time.Minute) // one Secret gets few tokens at once
	subject("sub:u1")
}

// An identity that is being deleted gives tokens to Secrets of its bindings, and to no others.
func TestDeletedIdentityServesBindingsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		secret     *corev1.Secret
		finalizers []string
		tokens     int
	}{
		"by a binding":           {bound("ns", "s", "infra"), []string{v1alpha1.FinalizerBindings}, 1},
		"by name":                {deliverytest.LabeledSecret("ns", "s", "banana"), []string{v1alpha1.FinalizerBindings}, 0},
		"released, by a binding": {bound("ns", "s", "infra"), []string{"other"}, 0},
	} {
		w := deliverytest.New(t, test.secret)
		wi := w.AddIdentity("ns", "banana", "u1")
		wi.DeletionTimestamp, wi.Finalizers = &metav1.Time{Time: deliverytest.Start}, test.finalizers
		w.Secrets.Bindings = boundTo{"ns/infra": "banana"}
		w.Look("ns/s")
		if len(w.Tokens) != test.tokens {
			t.Errorf("%s: %d tokens, want %d", name, len(w.Tokens), test.tokens)
		}
	}
}

// sentUses are reports of the use of bindings, in words.
type sentUses chan string

func (s sentUses) Report(_ context.Context, name types.NamespacedName, _ types.UID, report v1alpha1.DeliveryReportSpec) error {
	s <- fmt.Sprintf("%s: %d Secrets, elsewhere %q", name, report.Secrets, report.Names)
	return nil
}

// The agent reports the Secrets that name a binding. Those of its namespace are elsewhere if the identities are of another cluster.
func TestUsesOfBindingsAreReported(t *testing.T) {
	for own, want := range map[bool]string{
		true:  `ns/infra: 2 Secrets, elsewhere ["other/s"]`,
		false: `ns/infra: 2 Secrets, elsewhere ["ns/s" "other/s"]`,
	} {
		foreign := bound("other", "s", "infra")
		foreign.Annotations[v1alpha1.AnnotationNamespace] = "ns"
		w := deliverytest.New(t, bound("ns", "s", "infra"), foreign, deliverytest.LabeledSecret("ns", "by-name", "banana"))
		w.AddIdentity("ns", "banana", "u1")
		w.Secrets.Bindings, w.Secrets.OwnIdentities = boundTo{"ns/infra": "banana"}, own
		sent := make(sentUses, 2)
		w.Secrets.Uses = reports.New(sent, 0, w.Clock, slog.New(slog.DiscardHandler))
		for _, secret := range []string{"ns/s", "other/s", "ns/by-name"} {
			w.Look(secret)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Secrets.Uses.Run(ctx)
		if got := <-sent; got != want {
			t.Errorf("reported %s, want %s", got, want)
		}
		cancel()
	}
}
