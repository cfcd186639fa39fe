package workloadidentities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
)

// The indexes of deliveries: by the Secret, by its namespace, and by the uid of the context object where the Secret is not known.
const (
	bySecret    = "secret"
	byNamespace = "namespace"
	unplaced    = "unplaced"
)

// Deliveries follows the ContextDeliveries of the caller's cluster. While it can't follow them, it keeps those that it has read.
type Deliveries struct {
	client   client
	cluster  string
	log      *slog.Logger
	informer cache.SharedIndexInformer
	onChange func(*v1alpha1.ContextDelivery)
	onKnown  func()

	mu        sync.Mutex
	complaint string // that was logged last, and lasts
}

// NewDeliveries returns the Deliveries of the cluster of config, to which the caller's has joined by a name, or an empty one. onChange is called with each delivery that appears, changes or goes, and onKnown
// once all were read.
func NewDeliveries(config *rest.Config, cluster string, onChange func(*v1alpha1.ContextDelivery), onKnown func(), log *slog.Logger) (*Deliveries, error) {
	client, err := clientOf(config, v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	d := &Deliveries{client: client, cluster: cluster, log: log, onChange: onChange, onKnown: onKnown}
	d.informer = cache.NewSharedIndexInformer(unstreamed{&cache.ListWatch{ListWithContextFunc: d.list, WatchFuncWithContext: d.watch}}, &v1alpha1.ContextDelivery{}, 0, cache.Indexers{
		bySecret: index(func(d *v1alpha1.ContextDelivery) string { return d.Spec.Secret.Namespace + "/" + d.Spec.Secret.Name }),
		byNamespace: index(func(d *v1alpha1.ContextDelivery) string {
			return d.Spec.Secret.Namespace
		}),
		unplaced: index(func(d *v1alpha1.ContextDelivery) string {
			if d.Spec.Secret.Name == "" {
				return string(d.Spec.ContextObject.UID)
			}
			return ""
		}),
	})
	return d, nil
}

func index(value func(*v1alpha1.ContextDelivery) string) cache.IndexFunc {
	return func(object any) ([]string, error) { return []string{value(object.(*v1alpha1.ContextDelivery))}, nil }
}

// unstreamed lists before it watches: the resource is not stored, and does not stream its list.
type unstreamed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what a reflector looks for.
func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// Run follows deliveries until ctx is done.
func (d *Deliveries) Run(ctx context.Context) error {
	_ = d.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { d.failed(err) })
	_, err := d.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    d.report,
		UpdateFunc: func(_, object any) { d.report(object) },
		DeleteFunc: d.report,
	})
	if err != nil {
		return fmt.Errorf("follow ContextDeliveries: %w", err)
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), d.informer.HasSynced) {
			d.onKnown()
		}
	}()
	d.informer.RunWithContext(ctx)
	return nil
}

func (d *Deliveries) report(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if delivery, ok := object.(*v1alpha1.ContextDelivery); ok {
		d.onChange(delivery)
	}
}

// Known reports whether all deliveries have been read once.
func (d *Deliveries) Known() bool { return d.informer.HasSynced() }

// Of returns the deliveries into a Secret, by name. They must not be changed.
func (d *Deliveries) Of(secret types.NamespacedName) []*v1alpha1.ContextDelivery {
	found := d.indexed(bySecret, secret.String())
	slices.SortFunc(found, func(a, b *v1alpha1.ContextDelivery) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Named returns the delivery of a name, or nil. It must not be changed.
func (d *Deliveries) Named(name string) *v1alpha1.ContextDelivery {
	found, exists, err := d.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	return found.(*v1alpha1.ContextDelivery)
}

// Unplaced reports whether it is not known at the moment which Secrets an object needs.
func (d *Deliveries) Unplaced(object types.UID) bool {
	return object != "" && len(d.indexed(unplaced, string(object))) > 0
}

// Secrets returns the Secrets of a namespace into which something is to be delivered; of all namespaces if it is empty.
func (d *Deliveries) Secrets(namespace string) []types.NamespacedName {
	namespaces := []string{namespace}
	if namespace == "" {
		namespaces = d.informer.GetIndexer().ListIndexFuncValues(byNamespace)
	}
	var secrets []types.NamespacedName
	for _, namespace := range namespaces {
		for _, delivery := range d.indexed(byNamespace, namespace) {
			if secret := delivery.Spec.Secret; secret.Name != "" {
				secrets = append(secrets, types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
			}
		}
	}
	return secrets
}

func (d *Deliveries) indexed(index, value string) []*v1alpha1.ContextDelivery {
	objects, err := d.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(err) // the index exists
	}
	var found []*v1alpha1.ContextDelivery
	for _, object := range objects {
		found = append(found, object.(*v1alpha1.ContextDelivery))
	}
	return found
}

// failed logs once why deliveries can't be followed, and again if that changes. An expired resource version is not a failure.
func (d *Deliveries) failed(err error) {
	var complaint string
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return
	case apierrors.IsNotFound(err):
		complaint = "the identity cluster has no ContextDeliveries, as it is of an older version: no Secrets are made for objects of ContextKinds until it is upgraded"
	case apierrors.IsUnauthorized(err):
		complaint = "no tokens are renewed, and no Secrets are made: " + failures.Rejoin(d.cluster, "")
	case apierrors.IsForbidden(err):
		complaint = "no Secrets are made for objects of ContextKinds: exactly one WorkloadCluster of the identity cluster must list the agent's user; a cluster admin there arranges it with: credence cluster join"
	default:
		complaint = "the identity cluster gives no answer about ContextDeliveries: Secrets of objects of ContextKinds stay as they are"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.complaint != complaint {
		d.complaint = complaint
		d.log.Warn(complaint, "error", err)
	}
}

func (d *Deliveries) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var list v1alpha1.ContextDeliveryList
	answer := d.get(options).Do(ctx)
	err := answer.Into(&list)
	for _, each := range answer.Warnings() {
		if err == nil && strings.Contains(each.Text, v1alpha1.InNoWorkloadCluster) {
			err = apierrors.NewForbidden(v1alpha1.Resource("contextdeliveries"), "", errors.New(each.Text)) // the list is empty: nothing is known
		}
	}
	if err == nil {
		d.mu.Lock()
		d.complaint = ""
		d.mu.Unlock()
	}
	return &list, err
}

func (d *Deliveries) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return d.get(options).Watch(ctx)
}

func (d *Deliveries) get(options metav1.ListOptions) *rest.Request {
	return d.client.rest.Get().Resource("contextdeliveries").VersionedParams(&options, d.client.parameters)
}
