package delivery

import (
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	profilesv1alpha1 "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/bindings"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/gates"
	"github.com/credence-id/credence/internal/delivery/workers"
	"github.com/credence-id/credence/internal/delivery/workload"
)

// identityIndex is that of cached Secrets by namespace/name of their identity, and bindingIndex of those that name a CredentialsBinding.
const (
	identityIndex = "identity"
	bindingIndex  = "binding"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = corev1.AddToScheme(s) // it only adds types
	_ = profilesv1alpha1.AddToScheme(s)
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// mapper knows the few resources that are used, so that starting needs no answer of the API. A cache of several namespaces looks up lists by
// their own kind.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, profilesv1alpha1.SchemeGroupVersion})
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		profilesv1alpha1.SchemeGroupVersion.WithKind("ServiceAccountProfile"): meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Secret"):                          meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Pod"):                             meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"):                  meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Namespace"):                       meta.RESTScopeRoot,
	} {
		m.Add(kind, scope)
		m.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), scope)
	}
	return m, nil
}

func byObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: requestors()},
		&corev1.Pod{}: {
			Field:     fields.OneTermEqualSelector("spec.nodeName", ""),
			Transform: gatedOnly,
		},
		&profilesv1alpha1.ServiceAccountProfile{}: {Transform: identitiesOnly},
	}
}

// requestors selects the Secrets that request tokens.
func requestors() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor})
}

// identitiesOnly keeps of a profile the list of identities.
func identitiesOnly(object any) (any, error) {
	profile, ok := object.(*profilesv1alpha1.ServiceAccountProfile)
	if !ok {
		return object, nil
	}
	small := &profilesv1alpha1.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name, UID: profile.UID, ResourceVersion: profile.ResourceVersion}}
	small.Spec.WorkloadIdentities = profile.Spec.WorkloadIdentities
	return small, nil
}

// gatedOnly keeps of a pod what the gates need.
func gatedOnly(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
	}}
	if gates.Of(pod) >= 0 {
		small.Spec.SchedulingGates, small.Spec.Volumes, small.Spec.ServiceAccountName = pod.Spec.SchedulingGates, pod.Spec.Volumes, pod.Spec.ServiceAccountName
		if waiting := gates.Waiting(pod); waiting != nil {
			small.Status.Conditions = []corev1.PodCondition{*waiting}
		}
	}
	return small, nil
}

func accountList() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccountList"}}
}

// indexes are those of cached Secrets.
func indexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		identityIndex: func(object client.Object) []string {
			annotations := object.GetAnnotations()
			return []string{annotations[v1alpha1.AnnotationNamespace] + "/" + annotations[v1alpha1.AnnotationName]}
		},
		bindingIndex: func(object client.Object) []string {
			annotations := object.GetAnnotations()
			if name, bound := annotations[v1alpha1.AnnotationBinding]; bound {
				return []string{annotations[v1alpha1.AnnotationNamespace] + "/" + name}
			}
			return nil
		},
		accounts.Index: accounts.IndexValues,
	}
}

// register connects the controllers with what they watch.
func (a *Agent) register(config Config) error {
	ctx := context.Background()
	for name, values := range indexes() {
		if err := a.manager.GetFieldIndexer().IndexField(ctx, &corev1.Secret{}, name, values); err != nil {
			return err
		}
	}
	if a.watch != nil {
		if err := (&bindings.Release{Serves: a.serves, Log: config.Log}).Register(a.manager, source.Func(a.served.Start)); err != nil {
			return err
		}
	}
	if err := builder.ControllerManagedBy(a.manager).Named("tokens").
		For(&corev1.Secret{}).
		WatchesRawSource(source.Func(a.secrets.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: config.Concurrency}).
		Complete(workers.Fair(wakeful{a.controllers.Secrets}, config.Clock, config.Concurrency, a.secrets.Add)); err != nil {
		return err
	}
	if a.controllers.Contexts != nil {
		if err := builder.ControllerManagedBy(a.manager).Named("contexts").
			For(&corev1.Secret{}, builder.WithPredicates(predicate.Funcs{
				CreateFunc: func(e event.CreateEvent) bool { return a.delivered(e.Object) },
				// A Secret that has lost its mark, too.
				UpdateFunc: func(e event.UpdateEvent) bool { return a.delivered(e.ObjectOld) || a.delivered(e.ObjectNew) },
				DeleteFunc: func(e event.DeleteEvent) bool { return a.delivered(e.Object) },
			})).
			Watches(workload.NewNamespace(), handler.EnqueueRequestsFromMapFunc(a.namespaceChanged)).
			WatchesRawSource(source.Func(a.startWanted)).
			WithOptions(controller.Options{MaxConcurrentReconciles: config.Concurrency}).
			Complete(workers.Fair(a.controllers.Contexts, config.Clock, config.Concurrency, a.wanted.Add)); err != nil {
			return err
		}
	}
	if err := builder.ControllerManagedBy(a.manager).Named("accounts").
		For(workload.NewAccount(), builder.WithPredicates(predicate.NewPredicateFuncs(a.concerns))).
		// A profile has the name of its account. The list that it had matters, too.
		Watches(&profilesv1alpha1.ServiceAccountProfile{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return workload.Lists(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return workload.Lists(e.ObjectOld) || workload.Lists(e.ObjectNew) },
			DeleteFunc: func(e event.DeleteEvent) bool { return workload.Lists(e.Object) },
		})).
		Watches(workload.NewNamespace(), handler.EnqueueRequestsFromMapFunc(a.accountsIn)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(accountRequest)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(a.accountOfPod), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WatchesRawSource(source.Func(a.services.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: config.Concurrency}).
		Complete(workers.Fair(a.controllers.Accounts, config.Clock, config.Concurrency, a.services.Add)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(a.manager).Named("gates").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool { return gates.Of(object.(*corev1.Pod)) >= 0 }))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(a.podsWaitingFor)).
		WatchesRawSource(source.Func(a.pods.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: config.Concurrency}).
		Complete(workers.Fair(a.controllers.Gates, config.Clock, config.Concurrency, a.pods.Add))
}

// delivered reports whether a Secret was made for a delivery, or has the name of one.
func (a *Agent) delivered(secret client.Object) bool {
	return contexts.Marked(secret) || len(a.controllers.Contexts.Deliveries.Of(client.ObjectKeyFromObject(secret))) > 0
}

// startWanted starts the queue with what was to be delivered before: most of it has no Secret yet.
func (a *Agent) startWanted(ctx context.Context, inner workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if err := a.wanted.Start(ctx, inner); err != nil {
		return err
	}
	for _, key := range append(a.controllers.Contexts.Deliveries.Secrets(metav1.NamespaceAll), a.controllers.Contexts.Unplaced()...) {
		a.wanted.Add(key, 0)
	}
	return nil
}

// namespaceChanged are the Secrets of deliveries in a namespace that may have its label now, or not any more: their tokens follow that, too.
func (a *Agent) namespaceChanged(ctx context.Context, namespace client.Object) []reconcile.Request {
	requests := a.deliveriesIn(ctx, namespace)
	for _, request := range requests {
		a.secrets.Add(request.NamespacedName, 0)
	}
	return requests
}

// deliveriesIn are the Secrets of a namespace that has changed which deliveries need, or were made for one.
func (a *Agent) deliveriesIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	if a.controllers.Contexts == nil {
		return nil
	}
	wanted := map[types.NamespacedName]struct{}{}
	for _, key := range a.controllers.Contexts.Deliveries.Secrets(namespace.GetName()) {
		wanted[key] = struct{}{}
	}
	var secrets corev1.SecretList
	if err := a.manager.GetCache().List(ctx, &secrets, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err == nil {
		for i := range secrets.Items {
			if contexts.Marked(&secrets.Items[i]) {
				wanted[client.ObjectKeyFromObject(&secrets.Items[i])] = struct{}{}
			}
		}
	}
	var requests []reconcile.Request
	for key := range wanted {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// concerns reports whether a service account has, or may still have, Secrets of the agent.
func (a *Agent) concerns(object client.Object) bool {
	if _, ok := object.GetAnnotations()[v1alpha1.AnnotationAccountIdentities]; ok {
		return true
	}
	var profile profilesv1alpha1.ServiceAccountProfile
	if err := a.manager.GetCache().Get(context.Background(), client.ObjectKeyFromObject(object), &profile); err == nil && workload.Lists(&profile) {
		return true
	}
	var secrets corev1.SecretList
	err := a.manager.GetCache().List(context.Background(), &secrets, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{accounts.Index: object.GetName()}, client.UnsafeDisableDeepCopy)
	return err != nil || len(secrets.Items) > 0
}

// accountsIn are the service accounts of a namespace that has changed.
func (a *Agent) accountsIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	list := accountList()
	if err := a.manager.GetCache().List(ctx, list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if a.concerns(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// accountRequest is the service account that a Secret belongs to.
func accountRequest(_ context.Context, secret client.Object) []reconcile.Request {
	if account, _, ok := workload.AccountOf(secret); ok {
		return []reconcile.Request{{NamespacedName: account}}
	}
	return nil
}

// accountOfPod is the service account of a pod that waits for Secrets, where these are made for such pods alone.
func (a *Agent) accountOfPod(ctx context.Context, object client.Object) []reconcile.Request {
	pod := object.(*corev1.Pod)
	if gates.Of(pod) < 0 {
		return nil
	}
	if stores, err := workload.Stores(ctx, a.manager.GetCache(), pod.Namespace, a.delivery); err != nil || stores {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}}
}

// podsWaitingFor are the pods that wait for a Secret which has its token.
func (a *Agent) podsWaitingFor(ctx context.Context, object client.Object) []reconcile.Request {
	if len(object.(*corev1.Secret).Data[v1alpha1.SecretToken]) == 0 {
		return nil
	}
	var pods corev1.PodList
	if err := a.manager.GetCache().List(ctx, &pods, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if slices.Contains(workload.TokenSecrets(&pods.Items[i]), object.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Name}})
		}
	}
	return requests
}

// longestSleep bounds how long an object is not looked at: timers stand still while a machine is suspended, and clocks are put
// right.
const longestSleep = 10 * time.Minute

// wakeful looks again before a long wait is over.
type wakeful struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (w wakeful) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := w.Reconciler.Reconcile(ctx, request)
	result.RequeueAfter = min(result.RequeueAfter, longestSleep)
	return result, err
}
