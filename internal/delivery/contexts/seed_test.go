package contexts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
)

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

// seed is a World with a namespace that lets Secrets be made, and an identity.
type seed struct {
	*deliverytest.World
	t *testing.T
}

func newSeed(t *testing.T, objects ...client.Object) seed {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedNamespace, Labels: map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}}}
	w := deliverytest.New(t, append(objects, namespace)...)
	w.AddIdentity("garden-local", "banana-testing", "u1")
	return seed{w, t}
}

// deliver has the agent look at what is to be delivered into a Secret.
func (w seed) deliver(key string) time.Duration {
	w.t.Helper()
	return w.Reconcile(w.Contexts, key)
}

// follow has the agent look at what is to be delivered into a Secret, and then at the Secret.
func (w seed) follow(key string) time.Duration {
	w.t.Helper()
	wait := w.deliver(key)
	w.Look(key)
	return wait
}

func (w seed) state() contexts.State {
	return w.Contexts.Ledger.Get(deliverytest.Key(cloudprovider)).State
}

func (w seed) exists(key string) bool {
	w.t.Helper()
	err := w.Client.Get(w.t.Context(), deliverytest.Key(key), &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// relabel gives the namespace of deliveries other labels.
func (w seed) relabel(labels map[string]string) {
	w.t.Helper()
	w.Update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedNamespace, Labels: labels}})
}
