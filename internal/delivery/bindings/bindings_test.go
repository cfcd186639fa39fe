package bindings

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/test/testkit"
)

var (
	forIdentities = map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	forContexts   = map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}
)

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func workloadCluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme} {
		testkit.Must(t, add(scheme))
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// withClient is a manager that has a client, and runs nothing.
type withClient struct {
	manager.Manager
	client client.Client
}

func (m withClient) GetClient() client.Client { return m.client }

func look(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// A namespace gets the RoleBindings that its labels need, and a binding that exists is not changed.
func TestBinderBindsWhatTheLabelsNeed(t *testing.T) {
	foreign := rights.OfAgent("taken")
	foreign.RoleRef.Name = "edit"
	kube := workloadCluster(t, foreign,
		namespace("orchard", forIdentities), namespace("shoot", forContexts), namespace("plain", nil), namespace("kube-system", forIdentities), namespace("taken", forContexts))
	binder := &Binder{manager: withClient{client: kube}, log: slog.New(slog.DiscardHandler)}
	for name, want := range map[string][]rbacv1.RoleBinding{
		"orchard":     {*rights.OfAgent("orchard"), *rights.OfWebhook("orchard")},
		"shoot":       {*rights.OfAgent("shoot")},
		"plain":       nil,
		"kube-system": nil,
		"gone":        nil,
		"taken":       {*foreign},
	} {
		for range 2 {
			if _, err := binder.Reconcile(t.Context(), look(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		var found rbacv1.RoleBindingList
		testkit.Must(t, kube.List(t.Context(), &found, client.InNamespace(name)))
		if !slices.EqualFunc(found.Items, want, func(a, b rbacv1.RoleBinding) bool { return a.Name == b.Name && rights.Gives(&a, &b) }) {
			t.Errorf("%s: RoleBindings %+v, want %+v", name, found.Items, want)
		}
	}
}

func TestBinderIsNotReadyBeforeItRuns(t *testing.T) {
	binder := testkit.Need(NewBinder(&rest.Config{Host: "https://none.example"}, slog.New(slog.DiscardHandler)))(t)
	if binder.Ready() == nil {
		t.Error("it is ready, and has read nothing")
	}
}

// The right to Secrets is given back when a namespace has no label and no Secret with tokens, and not before. The agent's own goes last.
func TestRightIsGivenBackWithoutSecrets(t *testing.T) {
	labeled := func(labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "orchard", Name: "s", Labels: labels}}
	}
	tokens := labeled(map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor})
	both := []string{rights.WebhookPods, rights.AgentSecrets}
	for name, test := range map[string]struct {
		objects []client.Object
		served  bool
		fails   string // the RoleBinding that can't be deleted
		want    []string
	}{
		"no Secret":             {objects: []client.Object{namespace("orchard", nil)}, served: true, want: both},
		"other Secrets":         {objects: []client.Object{namespace("orchard", nil), labeled(nil)}, served: true, want: both},
		"a Secret with tokens":  {objects: []client.Object{namespace("orchard", nil), tokens}, served: true},
		"a label":               {objects: []client.Object{namespace("orchard", forIdentities)}, served: true},
		"a label for contexts":  {objects: []client.Object{namespace("orchard", forContexts)}, served: true},
		"not served":            {objects: []client.Object{namespace("orchard", nil)}},
		"no namespace":          {served: true},
		"the webhook's stays":   {objects: []client.Object{namespace("orchard", nil)}, served: true, fails: rights.WebhookPods, want: both[:1]},
		"the agent's own stays": {objects: []client.Object{namespace("orchard", nil)}, served: true, fails: rights.AgentSecrets, want: both},
		"another namespace's":   {objects: []client.Object{namespace("orchard", nil), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", Labels: tokens.Labels}}}, served: true, want: both},
		"another value":         {objects: []client.Object{namespace("orchard", map[string]string{v1alpha1.LabelNamespaceIdentities: "no"})}, served: true, want: both},
	} {
		t.Run(name, func(t *testing.T) {
			kube, deleted := workloadCluster(t, test.objects...), []string(nil)
			roles := kubefake.NewClientset(rights.OfAgent("orchard"), rights.OfWebhook("orchard"))
			roles.PrependReactor("delete", "rolebindings", func(action clienttesting.Action) (bool, runtime.Object, error) {
				deleted = append(deleted, action.(clienttesting.DeleteAction).GetName())
				if deleted[len(deleted)-1] == test.fails {
					return true, nil, errors.New("etcd is away")
				}
				return false, nil, nil
			})
			release := &Release{Serves: func(string) bool { return test.served }, Log: slog.New(slog.DiscardHandler), cached: kube, live: kube, bindings: roles.RbacV1()}
			if _, err := release.Reconcile(t.Context(), look("orchard")); (err != nil) != (test.fails != "") {
				t.Errorf("error %v", err)
			}
			if !slices.Equal(deleted, test.want) {
				t.Errorf("deleted %v, want %v", deleted, test.want)
			}
		})
	}
}
