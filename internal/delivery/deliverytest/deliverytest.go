// Package deliverytest runs the agent's controllers over two clusters in memory: a fake of the workload cluster's API, and an identity
// cluster of maps, whose answers a test chooses. Time passes when a test lets it. Nothing is watched: a test looks at the objects itself.
package deliverytest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	profilesv1alpha1 "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/delivery"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/workload"
)

// Start is the time at which a World begins.
var Start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// World is the agent's controllers, both clusters, and a clock.
type World struct {
	delivery.Controllers
	IdentityCluster
	t testing.TB

	Client client.Client // of the workload cluster
	Clock  *clocktesting.FakePassiveClock
	Queued map[string]time.Duration // Secrets and service accounts that controllers have queued

	Pods     []corev1.Pod // of each service account
	PodLists int          // how often they were listed
	Unserved string       // a namespace whose Secrets the agent may not read

	OnStatus    func() error        // before the status of an object is patched; an error is the answer
	OnPatch     func(client.Object) // before a patch is carried out
	Unwritable  error               // the answer to patches
	Uncreatable error               // the answer to creations

	events, identityEvents *record.FakeRecorder
}

// New returns a World with objects in the workload cluster.
func New(t testing.TB, objects ...client.Object) *World {
	w := &World{
		t: t, Clock: clocktesting.NewFakePassiveClock(Start), Queued: map[string]time.Duration{},
		events: record.NewFakeRecorder(10000), identityEvents: record.NewFakeRecorder(10000),
	}
	w.IdentityCluster = newIdentityCluster(t, w.Clock)
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // they only add types
	_ = profilesv1alpha1.AddToScheme(scheme)
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Secret{}, accounts.Index, accounts.IndexValues).WithInterceptorFuncs(w.answers()).Build()
	cluster := &w.IdentityCluster
	queue := func(key types.NamespacedName, after time.Duration) { w.Queued[key.String()] = after }
	w.Controllers = delivery.NewControllers(delivery.Config{
		Identities: identities{cluster}, Tokens: tokens{cluster}, Data: data{cluster}, Deliveries: deliveries{cluster}, Keys: keys{cluster}, Reviews: reviews{cluster},
		NamesAccounts: true, Window: renewal.Window{From: 0.6, To: 0.8},
		Clock: w.Clock, Random: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler),
		Events: workload.Events{Workload: w.events, Identity: w.identityEvents},
	}, delivery.Cluster{
		Client: w.Client, Live: w.Client, QueueSecret: queue, QueueAccount: queue,
		Serves: func(namespace string) bool { return namespace != w.Unserved },
		Pods: func(context.Context, types.NamespacedName) ([]corev1.Pod, error) {
			w.PodLists++
			return w.Pods, nil
		},
	})
	return w
}

// answers has the fake of the API answer as the fields of the World say.
func (w *World) answers() interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if w.OnPatch != nil {
				w.OnPatch(object)
			}
			if w.Unwritable != nil {
				return w.Unwritable
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if w.Uncreatable != nil {
				return w.Uncreatable
			}
			return c.Create(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if w.OnStatus != nil {
				if err := w.OnStatus(); err != nil {
					return err
				}
			}
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		},
	}
}

// Look has the agent look at a Secret, and returns after how long it looks again.
func (w *World) Look(key string) time.Duration {
	w.t.Helper()
	return w.Reconcile(w.Secrets, key)
}

// Reconcile has a controller look at an object, and returns after how long it looks again.
func (w *World) Reconcile(controller reconcile.Reconciler, key string) time.Duration {
	w.t.Helper()
	result, err := controller.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: Key(key)})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) { w.Clock.SetTime(w.Clock.Now().Add(d)) }

// Key splits namespace/name.
func Key(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// LookAtAccount has the agent look at a service account, and returns after how long it looks again.
func (w *World) LookAtAccount(key string) time.Duration {
	w.t.Helper()
	return w.Reconcile(w.Accounts, key)
}
