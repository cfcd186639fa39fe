package tokenrequest

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/issuer"
)

// Objects finds the kinds of objects that ContextKinds make contexts. Its errors are API errors.
type Objects interface {
	// Kind returns nil for a kind that no ContextKind has.
	Kind(apiVersion, kind string) (*contexts.Kind, error)
	// Supported lists the kinds for messages.
	Supported() []string
	// ClusterUID returns the uid of the object that stands for a workload cluster, or an empty one.
	ClusterUID(name string) (types.UID, error)
}

// rowOf is the row of a ContextKind in the table of supported kinds.
func rowOf(kind *contexts.Kind) *ContextKind {
	return &ContextKind{
		APIVersion: kind.Object.GroupVersion().String(), Kind: kind.Object.Kind, Resource: kind.Resource, Namespaced: kind.Namespaced, objects: kind, find: kind.Find,
	}
}

// personsVerbs are the verbs on an object that a person needs to have tokens for it. The agent of a workload cluster needs neither: the
// object must be on its cluster.
var personsVerbs = []string{"get", "impersonate"}

// resolvePersons checks that a person may get and impersonate the object of a ContextKind, which is not a workload cluster (403), and resolves it.
func (r *REST) resolvePersons(ctx context.Context, caller user.Info, kind *ContextKind, tr *v1alpha1.TokenRequest) (*issuer.Context, error) {
	resource, object := kind.Resource.GroupResource(), tr.Spec.ContextObject
	if kind.objects.Claim == contextkind.ClusterClaim {
		return nil, apierrors.NewForbidden(resource, object.Name, fmt.Errorf(
			"only users of WorkloadCluster %s are given tokens with this context: those of user %q could not name it", object.Name, caller.GetName()))
	}
	for _, verb := range personsVerbs {
		if allowed, err := r.authorized(ctx, caller, verb, kind.object(object)); err != nil {
			return nil, err
		} else if !allowed {
			return nil, apierrors.NewForbidden(resource, object.Name, fmt.Errorf(
				"user %q may not be given a token with this context: it cannot %s resource %q in API group %q in the namespace %q",
				caller.GetName(), verb, resource.Resource, resource.Group, object.Namespace))
		}
	}
	return r.resolveObject(ctx, kind, tr, nil)
}

// resolveObject checks, in this order, that an object of a ContextKind exists (404), is on the cluster of an agent (403, also if it does
// not exist), has the uid of the request (409), refers to the identity (403), and refers to the binding that an agent names (403). Related
// objects are looked up last (409 if one is missing).
func (r *REST) resolveObject(ctx context.Context, kind *ContextKind, tr *v1alpha1.TokenRequest, cluster *clusters.Cluster) (*issuer.Context, error) {
	resource, object := kind.Resource.GroupResource(), tr.Spec.ContextObject
	found, err := kind.find(object.Namespace, object.Name)
	// An agent learns nothing of the objects of other clusters, not even whether they exist.
	if cluster != nil && (apierrors.IsNotFound(err) || err == nil && !found.On(cluster.Name)) {
		return nil, apierrors.NewForbidden(resource, object.Name, fmt.Errorf("it is not on WorkloadCluster %s, or does not exist", cluster.Name))
	}
	if err != nil {
		return nil, err
	}
	if fault := found.Nowhere(); fault != "" && cluster == nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("agents get no tokens with this context, as it is not known on which clusters it is: %s", fault))
	}
	if found.UID != object.UID {
		return nil, otherUID(resource, object, found.UID)
	}
	if err := r.checkReference(ctx, resource, found, tr); err != nil {
		return nil, err
	}
	if err := r.checkWidened(ctx, resource, found, tr, cluster); err != nil {
		return nil, err
	}
	if cluster != nil {
		if err := checkNamed(resource, found, tr); err != nil {
			return nil, err
		}
	}
	claims, err := found.Claims()
	if err != nil {
		return nil, err
	}
	if len(claims) == 0 {
		return nil, nil // the cluster is claimed already
	}
	return &issuer.Context{Objects: claims}, nil
}

// checkReference refuses an object that does not refer to the identity of the request, by itself or by a CredentialsBinding.
func (r *REST) checkReference(ctx context.Context, resource schema.GroupResource, found contexts.Object, tr *v1alpha1.TokenRequest) error {
	identity := types.NamespacedName{Namespace: tr.Namespace, Name: tr.Name}
	fault := found.Uses(identity)
	if fault == nil {
		return nil
	}
	for _, binding := range found.Bindings() {
		if refers, err := r.Bindings.Refers(ctx, binding, identity); refers || err != nil {
			return err
		}
	}
	return apierrors.NewForbidden(resource, tr.Spec.ContextObject.Name, fault)
}

// checkWidened refuses an identity of a namespace that the workload cluster does not list, unless a local reference of the object names it.
// Users who write other references need no right to what these name, and an agent may write some itself.
func (r *REST) checkWidened(ctx context.Context, resource schema.GroupResource, found contexts.Object, tr *v1alpha1.TokenRequest, cluster *clusters.Cluster) error {
	if cluster == nil || slices.Contains(cluster.Spec.Identities.Namespaces, tr.Namespace) {
		return nil
	}
	err := r.checkReference(ctx, resource, found.Local(), tr)
	if apierrors.IsForbidden(err) {
		return apierrors.NewForbidden(resource, tr.Spec.ContextObject.Name, fmt.Errorf(
			"WorkloadCluster %s may not have identities of the namespace %s by it: spec.identities.namespaces must list it for objects without a namespace, and for what other objects lend", cluster.Name, tr.Namespace))
	}
	return err
}
