package credentialsbinding_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/credentialsbinding"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// referring are the objects that refer to the binding of a test.
type referring struct {
	objects []contexts.Counted
	err     error
}

func (r *referring) Bound([]types.NamespacedName) ([]contexts.Counted, error) {
	return r.objects, r.err
}

// warned keeps the warnings of requests.
type warned struct{ texts []string }

func (w *warned) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// bindings is a storage of bindings, with what refers to them.
type bindings struct {
	*credentialsbinding.REST
	*referring
	warned
	t     *testing.T
	ctx   context.Context
	agent string
}

func newBindings(t *testing.T) *bindings {
	return newBindingsWith(t, apiservertest.Rights{apiservertest.All})
}

func newBindingsWith(t *testing.T, all apiservertest.Rights) *bindings {
	t.Helper()
	scheme := testkit.Need(apiserver.NewScheme())(t)
	getter := apiservertest.NewStorage(t).RESTOptions(scheme, apiserver.GroupVersions()...)
	identities := testkit.Need(workloadidentity.NewREST(scheme, getter, "https://issuer.example.com", all))(t)
	limits := testkit.Need(quota.NewREST(scheme, getter))(t)
	made := testkit.Need(credentialsbinding.NewREST(scheme, getter, identities, limits, nil, all))(t)
	for _, destroy := range []func(){identities.Destroy, limits.Destroy, made.Destroy} {
		t.Cleanup(destroy)
	}
	b := &bindings{REST: made, referring: &referring{}, t: t, agent: "agent-east"}
	made.Objects = b.referring
	b.ctx = warning.WithWarningRecorder(apiservertest.As(t.Context(), "editor", "shop"), &b.warned)
	binding := &v1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cloud"},
		Provider:   v1alpha1.CredentialsProvider{Type: "aws"}, SecretRef: &v1alpha1.CredentialsReference{Name: "account"},
	}
	testkit.Must(t, testkit.Err(b.Create(b.ctx, binding, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})))
	return b
}

// now returns the binding; nil if it is gone.
func (b *bindings) now() *v1alpha1.CredentialsBinding {
	b.t.Helper()
	obj, err := b.Get(b.ctx, "cloud", &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		b.t.Fatal(err)
	}
	return obj.(*v1alpha1.CredentialsBinding)
}

func (b *bindings) delete() {
	b.t.Helper()
	if _, _, err := b.Delete(b.ctx, "cloud", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bindings) rehold() {
	b.t.Helper()
	if err := b.Rehold(b.ctx); err != nil {
		b.t.Fatal(err)
	}
}

// report is a report of an agent about Secrets.
func (b *bindings) report(at time.Time, secrets, elsewhere int32, names ...string) {
	b.t.Helper()
	kind := b.Reported()
	_, _, err := kind.Store.Update(b.ctx, "cloud", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject()
		return changed, kind.Record(changed, b.agent, v1alpha1.DeliveryReportSpec{Secrets: secrets, Elsewhere: elsewhere, Names: names}, at)
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

// wantHeld expects that the deletion waits, and that the condition has some words and the command that ends it.
func (b *bindings) wantHeld(words string) {
	b.t.Helper()
	now := b.now()
	if now == nil {
		b.t.Fatal("the binding is gone")
	}
	held := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReferred)
	const command = "credence identity release credentialsbinding/cloud -n shop --force"
	if held == nil || !strings.Contains(held.Message, words) || !strings.HasSuffix(held.Message, command) || !strings.Contains(held.Message, "shop/cloud") {
		b.t.Errorf("condition %+v, want %q and %q", held, words, command)
	}
}

func object(namespace, name string) contexts.Counted {
	return contexts.Counted{Resource: schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}, Namespace: namespace, Name: name}
}

// A binding stays while an object outside of its namespace refers to it, also one that the server has just seen.
func TestBindingStaysForObjectsElsewhere(t *testing.T) {
	b := newBindings(t)
	b.objects = []contexts.Counted{object("", "east")}
	b.delete()
	if len(b.texts) != 1 || !strings.Contains(b.texts[0], "shoots.core.gardener.cloud east") || !strings.HasSuffix(b.texts[0], "--force") {
		t.Errorf("warnings %q", b.texts)
	}
	b.rehold()
	b.wantHeld("shoots.core.gardener.cloud east")
	b.objects, b.err = nil, errors.New("the ContextKinds have not been read yet")
	b.rehold()
	b.wantHeld("it is not known which: the ContextKinds")
	b.err = nil
	b.rehold()
	if now := b.now(); now != nil {
		t.Errorf("without a consumer it stays: %+v", now.ObjectMeta)
	}
}

// A consumer in the namespace of a binding is warned about, and does not hold it: the deletion of the namespace must end.
func TestBindingIsNotHeldByItsNamespace(t *testing.T) {
	b := newBindings(t)
	b.objects = []contexts.Counted{object("shop", "userof")}
	b.report(time.Now(), 2, 0)
	b.rehold()
	b.delete()
	if want := "CredentialsBinding shop/cloud is in use in its namespace: 2 Secrets, shoots.core.gardener.cloud shop/userof: no more credentials are given by it"; !slices.Equal(b.texts, []string{want}) {
		t.Errorf("warnings %q, want %q", b.texts, want)
	}
	if now := b.now(); now != nil {
		t.Errorf("it stays: %+v", now.ObjectMeta)
	}
}

// A binding that was there before finalizers gets its one; it stays for Secrets that an agent reports, until it reports none.
func TestBindingStaysForSecretsElsewhere(t *testing.T) {
	b := newBindings(t)
	start := time.Now().Add(-90 * time.Second)
	b.report(start, 3, 2, "other/a", "other/b")
	if now := b.now(); !slices.Equal(now.Finalizers, []string{v1alpha1.FinalizerConsumers}) {
		t.Errorf("finalizers %q", now.Finalizers)
	}
	update := b.now()
	update.Finalizers = nil // as a manifest has it
	update.SecretRef = &v1alpha1.CredentialsReference{Name: "another"}
	if _, _, err := b.Update(b.ctx, "cloud", rest.DefaultUpdatedObjectInfo(update), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if now := b.now(); !slices.Equal(now.Finalizers, []string{v1alpha1.FinalizerConsumers}) {
		t.Errorf("finalizers %q after an update", now.Finalizers)
	}
	b.delete()
	b.rehold()
	b.wantHeld("2 Secrets that agent-east keeps (other/a, other/b)")
	b.report(start.Add(61*time.Second), 1, 0)
	b.rehold()
	if now := b.now(); now != nil {
		t.Errorf("without a Secret elsewhere it stays: %+v", now.Status)
	}
}

// An agent that is gone does not keep a binding for good.
func TestOldReportsHoldNoBinding(t *testing.T) {
	b := newBindings(t)
	b.report(time.Now().Add(-3*time.Hour), 1, 1, "other/a")
	b.delete()
	b.rehold()
	if now := b.now(); now != nil {
		t.Errorf("it stays: %+v", now.Status)
	}
}

// An agent that may not use a binding any more does not keep it: the RoleBindings of a namespace are deleted with it.
func TestAgentWithoutTheRightHoldsNoBinding(t *testing.T) {
	const agent = "system:serviceaccount:credence-system:credence-agent"
	for right, stays := range map[string]bool{"use credentialsbindings shop/cloud": true, "use credentialsbindings shop/other": false} {
		b := newBindingsWith(t, apiservertest.Rights{"get secrets shop/account", right})
		b.agent = agent
		b.report(time.Now(), 1, 1, "other/a")
		b.delete()
		b.rehold()
		if now := b.now(); (now != nil) != stays {
			t.Errorf("with the right to %s it is there: %v, want %v", right, now != nil, stays)
		}
	}
}

// A user who may update a binding that is being deleted ends the hold.
func TestBindingIsReleasedByForce(t *testing.T) {
	b := newBindings(t)
	b.objects = []contexts.Counted{object("elsewhere", "s")}
	b.rehold()
	b.delete()
	released := b.now()
	released.Finalizers = nil
	if _, _, err := b.Update(b.ctx, "cloud", rest.DefaultUpdatedObjectInfo(released), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.rehold()
	if now := b.now(); now != nil {
		t.Errorf("it stays: %+v", now.ObjectMeta)
	}
}
