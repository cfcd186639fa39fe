package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	profilesv1alpha1 "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/workers"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// filled is a cache that is filled, and follows nothing.
type filled struct {
	cache.Cache
	objects client.Client
}

func (c filled) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.objects.Get(ctx, key, object, options...)
}

func (c filled) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.objects.List(ctx, list, options...)
}

type withCache struct {
	manager.Manager
	cache cache.Cache
}

func (m withCache) GetCache() cache.Cache { return m.cache }

// followedIdentities and followedBindings keep which namespaces are retained.
type followedIdentities struct {
	Identities
	kept func(string) bool
}

func (f *followedIdentities) Retain(keep func(string) bool) { f.kept = keep }

type followedBindings struct {
	Bindings
	all  []*v1alpha1.CredentialsBinding
	kept func(string) bool
}

func (f *followedBindings) Each(visit func(*v1alpha1.CredentialsBinding)) {
	for _, binding := range f.all {
		visit(binding)
	}
}

func (f *followedBindings) Retain(keep func(string) bool) { f.kept = keep }

// none are no deliveries but those into a Secret.
type none struct {
	contexts.Deliveries
	into types.NamespacedName
}

func (n none) Secrets(namespace string) []types.NamespacedName {
	if n.into.Namespace != namespace {
		return nil
	}
	return []types.NamespacedName{n.into}
}

func secretOf(name string, annotations map[string]string, account string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: annotations, Labels: map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor},
	}}
	if account != "" {
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account}}
	}
	return secret
}

func naming(kind, name string) map[string]string {
	return map[string]string{kind: name, v1alpha1.AnnotationNamespace: "fruit"}
}

// watched is an agent that has read a few objects, and its queues.
func watched(t *testing.T) (*Agent, map[*workers.Queue]workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	marked := naming(v1alpha1.AnnotationName, "fig")
	marked[v1alpha1.AnnotationContextDelivery] = "d1"
	marked[v1alpha1.AnnotationContextObject] = tokensecret.FormatContext(v1alpha1.ContextObject{APIVersion: "g/v1", Kind: "Shoot", Name: "foo", Namespace: "garden", UID: "shoot"})
	profile := &profilesv1alpha1.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "listed", Name: "app"}}
	profile.Spec.WorkloadIdentities = []string{"fig"}
	account := func(namespace, name string, annotations map[string]string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits"}, Spec: corev1.PodSpec{
		ServiceAccountName: "owner", SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}},
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: tokensecret.NameFor("owner", "fig")}}}},
	}}
	builder := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{v1alpha1.LabelNamespaceDelivery: v1alpha1.DeliveryCSI}}},
		secretOf("named", naming(v1alpha1.AnnotationName, "banana"), ""), secretOf("bound", naming(v1alpha1.AnnotationBinding, "infra"), ""),
		secretOf("marked", marked, ""), secretOf("owned", naming(v1alpha1.AnnotationName, "cherry"), "owner"),
		account("fruit", "web", map[string]string{v1alpha1.AnnotationAccountIdentities: "banana"}), account("fruit", "other", nil),
		account("ns", "owner", nil), account("ns", "plain", nil), account("listed", "app", nil), profile, pod)
	for name, values := range indexes() {
		builder.WithIndex(&corev1.Secret{}, name, values)
	}
	binding := &v1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: "infra"}, WorkloadIdentityRef: &v1alpha1.CredentialsReference{Namespace: "store", Name: "grape"}}
	a := &Agent{manager: withCache{cache: filled{objects: builder.Build()}}, identities: &followedIdentities{}, bindings: &followedBindings{all: []*v1alpha1.CredentialsBinding{binding}}}
	a.controllers.Contexts = contexts.New(contexts.Needs{Deliveries: none{into: types.NamespacedName{Namespace: "ns", Name: "wanted"}}})
	queues := map[*workers.Queue]workqueue.TypedRateLimitingInterface[reconcile.Request]{}
	for _, queue := range []*workers.Queue{&a.secrets, &a.wanted, &a.services, &a.served} {
		queues[queue] = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(queues[queue].ShutDown)
		testkit.Must(t, queue.Start(t.Context(), queues[queue]))
	}
	return a, queues
}

// A change has those objects looked at that it concerns, and no others.
func TestChangesHaveObjectsLookedAt(t *testing.T) {
	delivery := func(secret, object string) *identityv1alpha1.ContextDelivery {
		d := &identityv1alpha1.ContextDelivery{ObjectMeta: metav1.ObjectMeta{Name: "d1"}}
		d.Spec.ContextObject.UID = types.UID(object)
		if secret != "" {
			d.Spec.Secret = identityv1alpha1.DeliveredSecret{Namespace: "ns", Name: secret}
		}
		return d
	}
	for name, test := range map[string]struct {
		change                            func(*Agent)
		secrets, wanted, accounts, served string
	}{
		"identity":                      {change: func(a *Agent) { a.IdentityChanged(types.NamespacedName{Namespace: "fruit", Name: "banana"}) }, secrets: "ns/named", accounts: "fruit/web"},
		"identity of a profile":         {change: func(a *Agent) { a.IdentityChanged(types.NamespacedName{Namespace: "listed", Name: "fig"}) }, accounts: "listed/app"},
		"identity of a binding":         {change: func(a *Agent) { a.IdentityChanged(types.NamespacedName{Namespace: "store", Name: "grape"}) }, secrets: "ns/bound"},
		"identity of another namespace": {change: func(a *Agent) { a.IdentityChanged(types.NamespacedName{Namespace: "ns", Name: "grape"}) }},
		"binding":                       {change: func(a *Agent) { a.BindingChanged(types.NamespacedName{Namespace: "fruit", Name: "infra"}) }, secrets: "ns/bound"},
		"delivery":                      {change: func(a *Agent) { a.DeliveryChanged(delivery("new", "shoot")) }, secrets: "ns/new", wanted: "ns/new"},
		"unplaced delivery":             {change: func(a *Agent) { a.DeliveryChanged(delivery("", "shoot")) }, secrets: "ns/marked", wanted: "/d1 ns/marked"},
		"… of another object":           {change: func(a *Agent) { a.DeliveryChanged(delivery("", "other")) }, wanted: "/d1"},
		"all deliveries":                {change: (*Agent).DeliveriesKnown, secrets: "ns/marked", wanted: "ns/marked"},
		"keys":                          {change: (*Agent).KeysRevoked, secrets: "ns/bound ns/marked ns/named ns/owned"},
		"namespace served": {change: func(a *Agent) { a.namespaceServed("ns") },
			secrets: "ns/marked ns/wanted", wanted: "ns/marked ns/wanted", accounts: "ns/owner", served: "/ns"},
	} {
		t.Run(name, func(t *testing.T) {
			a, queues := watched(t)
			test.change(a)
			for queue, want := range map[*workers.Queue]string{&a.secrets: test.secrets, &a.wanted: test.wanted, &a.services: test.accounts, &a.served: test.served} {
				var got []string
				for queues[queue].Len() > 0 {
					request, _ := queues[queue].Get()
					got = append(got, request.String())
				}
				if slices.Sort(got); strings.Join(got, " ") != want {
					t.Errorf("looked at are %v, want %q", got, want)
				}
			}
		})
	}
}

// The requests of watches are those of the objects that wait.
func TestWatchedObjectsRequestWhatWaits(t *testing.T) {
	a, _ := watched(t)
	own := secretOf(tokensecret.NameFor("owner", "fig"), nil, "owner")
	full := own.DeepCopy()
	full.Data = map[string][]byte{v1alpha1.SecretToken: []byte("t")}
	gated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{ServiceAccountName: "owner", SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}}}
	for name, test := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"pods of a filled Secret":             {a.podsWaitingFor(t.Context(), full), "ns/waits"},
		"pods of an empty Secret":             {a.podsWaitingFor(t.Context(), own), ""},
		"account of a Secret":                 {accountRequest(t.Context(), own), "ns/owner"},
		"account of a user's Secret":          {accountRequest(t.Context(), secretOf("s", nil, "")), ""},
		"account of a gated pod with volumes": {a.accountOfPod(t.Context(), gated), "ns/owner"},
		"account of a pod without a gate":     {a.accountOfPod(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}), ""},
	} {
		var got []string
		for _, request := range test.got {
			got = append(got, request.String())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}

// The namespaces of the identity cluster that Secrets, bindings, accounts and profiles refer to are followed, and no others.
func TestRetainedNamespaces(t *testing.T) {
	a, _ := watched(t)
	a.retainNamespaces(t.Context())
	identities, bindings := a.identities.(*followedIdentities), a.bindings.(*followedBindings)
	for namespace, want := range map[string][2]bool{"fruit": {true, true}, "store": {true, false}, "listed": {true, false}, "ns": {false, false}, "garden": {false, false}} {
		if got := [2]bool{identities.kept(namespace), bindings.kept(namespace)}; got != want {
			t.Errorf("%s: identities and bindings are followed: %v, want %v", namespace, got, want)
		}
	}
}

// Of pods and profiles the cache keeps what the controllers need: an unscheduled pod without the gate has nothing.
func TestCacheKeepsLittle(t *testing.T) {
	gate := []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{ServiceAccountName: "web", SchedulingGates: gate, Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}, {Type: v1alpha1.ConditionTokenReady}}}}
	kept := func() *corev1.Pod {
		small := testkit.Need(gatedOnly(pod))(t)
		return small.(*corev1.Pod)
	}
	if small := kept(); small.Name != "p" || small.UID != "u" || small.Labels != nil || small.Spec.ServiceAccountName != "web" || len(small.Spec.SchedulingGates) != 1 || small.Spec.Containers != nil || len(small.Status.Conditions) != 1 {
		t.Errorf("kept of a gated pod: %+v", small)
	}
	pod.Spec.SchedulingGates = nil
	if small := kept(); small.Spec.ServiceAccountName != "" || small.Status.Conditions != nil {
		t.Errorf("kept of another pod: %+v", small)
	}
	profile := &profilesv1alpha1.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"a": "b"}}}
	profile.Spec.WorkloadIdentities = []string{"banana"}
	small, err := identitiesOnly(profile)
	if got := small.(*profilesv1alpha1.ServiceAccountProfile); err != nil || got.Name != "web" || got.Annotations != nil || len(got.Spec.WorkloadIdentities) != 1 {
		t.Errorf("kept of a profile: %+v, %v", got, err)
	}
}
