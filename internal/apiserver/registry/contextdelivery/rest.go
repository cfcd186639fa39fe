// Package contextdelivery serves ContextDelivery objects, which are not stored. In go the objects of ContextKinds, bindings and identities,
// as they change; out come, for each user of a WorkloadCluster, the deliveries of that cluster. Other users get empty lists: tools list
// every kind that RBAC lets them list, and stop at a refusal. It issues no token, and writes nothing.
package contextdelivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/apiserver/storagewatch"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

// Clusters finds the workload cluster of a user, nil for a user of none. Its errors are API errors.
type Clusters interface {
	Of(user string) (*clusters.Cluster, error)
}

// Objects is an API error while it is not known what is to be delivered.
type Objects interface {
	Delivering() error
}

// REST serves the resource contextdeliveries.
type REST struct {
	stored.Table[*v1alpha1.ContextDelivery]
	index    *Index
	referred []*referred
	clusters Clusters
	objects  Objects
	clock    clock.WithTicker
}

var (
	_ rest.Storage              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// Config is what a REST is made of; every field is required.
type Config struct {
	// Index is the one that contexts.Follower fills.
	Index *Index
	// Identities and Bindings are the storages of these.
	Identities, Bindings storagewatch.Storage
	Clusters             Clusters
	Objects              Objects
	Clock                clock.WithTicker
}

// NewREST returns the resource. Until Run is called, nothing is known.
func NewREST(config Config) (*REST, error) {
	identities, err := followIdentities(config.Identities, config.Index)
	if err != nil {
		return nil, err
	}
	bindings, err := followBindings(config.Bindings, config.Index)
	if err != nil {
		return nil, err
	}
	return &REST{Table: table, index: config.Index, referred: []*referred{identities, bindings}, clusters: config.Clusters, objects: config.Objects, clock: config.Clock}, nil
}

// Run follows identities and bindings until ctx is done.
func (r *REST) Run(ctx context.Context) {
	for _, each := range r.referred {
		go each.run(ctx)
	}
}

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &v1alpha1.ContextDelivery{} }

// Destroy implements rest.Storage.
func (*REST) Destroy() {}

// NewList implements rest.Lister.
func (*REST) NewList() runtime.Object { return &v1alpha1.ContextDeliveryList{} }

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "contextdelivery" }

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }

// Get implements rest.Getter.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	cluster, err := r.callersCluster(ctx)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		if found := r.index.get(cluster.Name, name); found != nil {
			return seen(cluster, found), nil
		}
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("contextdeliveries"), name)
}

// List implements rest.Lister. A list always has the present state.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	cluster, err := r.callersCluster(ctx)
	if err != nil {
		return nil, err
	}
	found, version := r.index.of(cluster)
	list := &v1alpha1.ContextDeliveryList{Items: make([]v1alpha1.ContextDelivery, 0, len(found))}
	list.ResourceVersion = strconv.FormatUint(version, 10)
	for _, each := range found {
		if selected(options, each) {
			list.Items = append(list.Items, *seen(cluster, each))
		}
	}
	return list, nil
}

// Watch implements rest.Watcher. A resource version of another process, or one that is too old, is 410: the client lists again.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	cluster, err := r.callersCluster(ctx)
	if err != nil {
		return nil, err
	}
	caller, _ := request.UserFrom(ctx)
	w := &watcher{
		REST: r, user: caller.GetName(), cluster: cluster, selected: func(d *v1alpha1.ContextDelivery) bool { return selected(options, d) },
		result: make(chan watch.Event), stopped: make(chan struct{}), bookmarks: options.AllowWatchBookmarks,
	}
	streamed := options.SendInitialEvents != nil && *options.SendInitialEvents
	if version := options.ResourceVersion; streamed || options.SendInitialEvents == nil && (version == "" || version == "0") {
		w.initial, w.version = r.index.of(cluster)
		w.marked = streamed && options.AllowWatchBookmarks
	} else if w.version, err = strconv.ParseUint(version, 10, 64); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %v", err))
	}
	if _, _, kept := r.index.after(w.version); !kept {
		return nil, apierrors.NewResourceExpired(unknownVersion)
	}
	go w.run(ctx)
	return w, nil
}

// Needed are the deliveries of an object to a cluster, as that sees them. The error is 503 where they are not known.
func (r *REST) Needed(resource schema.GroupResource, object types.NamespacedName, cluster *clusters.Cluster) ([]*v1alpha1.ContextDelivery, error) {
	if err := r.known(); err != nil {
		return nil, err
	}
	found := r.index.needed(objectKey{resource, object.Namespace, object.Name}, cluster.Name)
	for i, each := range found {
		found[i] = seen(cluster, each)
	}
	return found, nil
}

// Delivers reports whether an object has tokens of an identity delivered to a cluster, which may have them. The error is 503 while that is not known.
func (r *REST) Delivers(cluster *clusters.Cluster, namespace, identity string) (bool, error) {
	if err := r.known(); err != nil {
		return false, err
	}
	all, _ := r.index.of(cluster)
	return slices.ContainsFunc(all, func(d *v1alpha1.ContextDelivery) bool {
		of := d.Spec.WorkloadIdentity
		return of != nil && of.Namespace == namespace && of.Name == identity && seen(cluster, d).Spec.Problem == d.Spec.Problem
	}), nil
}

// known is 503 while it is not known what is delivered.
func (r *REST) known() error {
	if err := r.objects.Delivering(); err != nil {
		return err
	}
	if missing := r.missing(); missing != "" {
		return unavailable.New("what is to be delivered is not known: %s have not been read yet", missing)
	}
	return nil
}

// HasSynced reports whether what is to be delivered is known.
func (r *REST) HasSynced() bool { return r.known() == nil }

// callersCluster returns the cluster of the caller, or nil and a warning if no cluster lists the caller. The error is 403 for a service
// account of joined clusters in no cluster: its agent must not take that for an empty list and delete its Secrets. It is 503 while the
// deliveries of the cluster are not known.
func (r *REST) callersCluster(ctx context.Context) (*clusters.Cluster, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("deliveries are listed for authenticated callers only")
	}
	cluster, err := r.clusters.Of(caller.GetName())
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		return cluster, r.known()
	}
	why := fmt.Sprintf("user %q %s, and each of those sees what is delivered to it alone; to find out what is delivered of an object, look at the object and at the references of its ContextKind",
		caller.GetName(), v1alpha1.InNoWorkloadCluster)
	if clusters.Joined(caller) {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("contextdeliveries"), "", errors.New(why))
	}
	warning.AddWarning(ctx, "", why)
	return nil, nil
}

// missing returns a resource that has not been read, or an empty text.
func (r *REST) missing() string {
	for _, each := range r.referred {
		if !each.filled() {
			return each.name
		}
	}
	return r.index.missing()
}

// seen returns a delivery as a cluster sees it: for an identity, or a binding to a Secret, that it may not have, only the problem. It is a copy,
// as an encoder may write to it.
func seen(cluster *clusters.Cluster, d *v1alpha1.ContextDelivery) *v1alpha1.ContextDelivery {
	own := *d
	identities, of, what := cluster.Spec.Identities, d.Spec.WorkloadIdentity, "identities"
	if of == nil {
		of, what = d.Spec.CredentialsBinding, "data of bindings"
	}
	if d.Spec.Problem != "" || of == nil || slices.Contains(identities.Namespaces, of.Namespace) {
		return &own
	}
	switch {
	case !identities.FromContexts:
		spoil(&own, fmt.Sprintf("WorkloadCluster %s may not have %s of the namespace %s: set spec.identities.fromContexts, or add it to spec.identities.namespaces", cluster.Name, what, of.Namespace))
	case d.Spec.ContextObject.Namespace == "":
		spoil(&own, fmt.Sprintf("WorkloadCluster %s may not have %s of the namespace %s by an object without a namespace: add it to spec.identities.namespaces", cluster.Name, what, of.Namespace))
	}
	return &own
}

// selected reports whether a client selects a delivery. Deliveries have no labels.
func selected(options *metainternalversion.ListOptions, d *v1alpha1.ContextDelivery) bool {
	return (options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(d.Labels))) &&
		(options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{"metadata.name": d.Name}))
}
