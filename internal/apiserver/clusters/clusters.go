// Package clusters finds the workload cluster of a user. In go the WorkloadClusters of the server's own storage, followed by a watch; out
// comes the one cluster that lists the user, or an API error if that is not known or there are two. It also stores when each cluster was
// last seen. It reads no tokens and no rights.
package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/storagewatch"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

// Cluster is a workload cluster. It is shared: do not change it.
type Cluster = v1alpha1.WorkloadCluster

// byUser is the index of clusters by the names of their users.
const byUser = "user"

// Index has the clusters of a storage.
type Index struct{ informer cache.SharedIndexInformer }

// New returns an Index. Nothing is read before it runs.
func New(storage storagewatch.Storage) *Index {
	return &Index{cache.NewSharedIndexInformer(storagewatch.Source(storage), &Cluster{}, 0, cache.Indexers{byUser: func(object any) ([]string, error) {
		cluster, ok := object.(*Cluster)
		if !ok {
			return nil, fmt.Errorf("a %T is not a WorkloadCluster", object)
		}
		return cluster.Spec.Users, nil
	}})}
}

// Run follows the clusters until ctx is done.
func (i *Index) Run(ctx context.Context) { i.informer.RunWithContext(ctx) }

// HasSynced reports whether the clusters have been read.
func (i *Index) HasSynced() bool { return i.informer.HasSynced() }

// Of returns the cluster that lists a user, or nil. The error is 503 until the clusters have been read, and 403 for a user whom two
// clusters list, or one that is being deleted.
func (i *Index) Of(user string) (*Cluster, error) {
	if !i.HasSynced() {
		return nil, unavailable.New("of which workload cluster user %q is, is not known: the workload clusters have not been read yet", user)
	}
	found, err := i.informer.GetIndexer().ByIndex(byUser, user)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, severalOf(user, found)
	}
	cluster := found[0].(*Cluster)
	if cluster.DeletionTimestamp != nil {
		return nil, forbidden(cluster.Name, "the workload cluster of user %q is being deleted", user)
	}
	return cluster, newer.Check(cluster)
}

// Named returns the cluster of a name; nil without one. The error is 503 before the clusters were read, and 403 for one without users or
// that is being deleted.
func (i *Index) Named(name string) (*Cluster, error) {
	if !i.HasSynced() {
		return nil, unavailable.New("WorkloadCluster %s is not known: the workload clusters have not been read yet", name)
	}
	found, exists, err := i.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil, err
	}
	cluster := found.(*Cluster)
	switch {
	case cluster.DeletionTimestamp != nil:
		return nil, forbidden(name, "the workload cluster is being deleted")
	case len(cluster.Spec.Users) == 0:
		return nil, forbidden(name, "spec.users is empty, so there is no agent of it")
	}
	return cluster, newer.Check(cluster)
}

func severalOf(user string, found []any) error {
	var names []string
	for _, object := range found {
		names = append(names, object.(*Cluster).Name)
	}
	slices.Sort(names)
	return forbidden(names[0], "user %q is of several workload clusters (%s), and so gets no tokens: take it off all but one", user, strings.Join(names, ", "))
}

func forbidden(name, format string, args ...any) error {
	return apierrors.NewForbidden(v1alpha1.Resource("workloadclusters"), name, fmt.Errorf(format, args...))
}
