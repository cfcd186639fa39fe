package tokenrequest

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/issuer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ContextKind is one kind of object that may be the context of a token: one row of the table of supported kinds.
type ContextKind struct {
	APIVersion, Kind string
	Resource         schema.GroupVersionResource
	Namespaced       bool
	// UserName is the name of the user that an object acts as.
	UserName func(namespace, name string) string
	// Find reads the object live. Its errors are API errors, as the API server of the object gave them.
	Find func(ctx context.Context, namespace, name string) (ContextFacts, error)
	// Asserted returns the context for an object of another cluster, which users of that cluster assert; nil for a kind that they can't
	// assert.
	Asserted func(object *v1alpha1.ContextObject) *issuer.Context
	// Username returns the name of an object outside of the cluster; empty if it has none. Its errors are API errors.
	Username func(ctx context.Context, namespace, name string) (string, error)

	// objects replaces all these functions, in the row of a ContextKind, of which find finds an object.
	objects *contexts.Kind
	find    func(namespace, name string) (contexts.Object, error)
}

// ContextFacts is what is known of a context object.
type ContextFacts struct {
	// UID is the uid of the object that exists now.
	UID types.UID
	// User is the user of the object's requests; it must be allowed to use the identity.
	User user.Info
	// Context becomes part of the token's claims.
	Context *issuer.Context
}

// Usernames has the names of service accounts outside of the cluster.
type Usernames interface {
	Username(ctx context.Context, namespace, name string) (string, error)
}

// ServiceAccounts is the row for v1 ServiceAccount.
func ServiceAccounts(client corev1client.ServiceAccountsGetter, usernames Usernames) ContextKind {
	return ContextKind{
		APIVersion: "v1",
		Kind:       "ServiceAccount",
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"},
		Namespaced: true,
		UserName:   authority.AccountName,
		Username:   usernames.Username,
		Asserted: func(object *v1alpha1.ContextObject) *issuer.Context {
			return &issuer.Context{ServiceAccount: &issuer.ServiceAccount{Namespace: object.Namespace, Name: object.Name, UID: string(object.UID)}}
		},
		Find: func(ctx context.Context, namespace, name string) (ContextFacts, error) {
			account, err := client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return ContextFacts{}, err
			}
			subject := authority.ServiceAccount(namespace, name, string(account.UID))
			return ContextFacts{
				UID:  account.UID,
				User: &user.DefaultInfo{Name: subject.Name, UID: subject.UID, Groups: subject.Groups},
				Context: &issuer.Context{ServiceAccount: &issuer.ServiceAccount{
					Namespace: namespace, Name: name, UID: string(account.UID),
				}},
			}, nil
		},
	}
}

// resolveContext checks, in the order that reveals nothing to a caller without rights: may the caller get the object
// (403), may it act for the object (403), does the object exist (404), is it the one that was meant (409), may it use the
// identity (403). Its username is looked up last (503 where it is not known). Users of a workload cluster assert the accounts of their own.
func (r *REST) resolveContext(ctx context.Context, kind *ContextKind, tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, cluster *clusters.Cluster) (*issuer.Context, error) {
	if kind == nil {
		return nil, nil
	}
	object := tr.Spec.ContextObject
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("a token with a context object is issued to authenticated callers only")
	}
	if cluster != nil && kind.Asserted != nil {
		return r.assertedContext(ctx, caller, kind, object, wi)
	}
	if kind.objects != nil {
		return r.resolvePersons(ctx, caller, kind, tr)
	}
	resource := kind.Resource.GroupResource()
	if allowed, err := r.authorized(ctx, caller, "get", kind.object(object)); err != nil {
		return nil, err
	} else if !allowed {
		return nil, apierrors.NewForbidden(resource, object.Name, fmt.Errorf(
			"user %q may not be given a token with this context: it cannot get resource %q in API group %q in the namespace %q",
			caller.GetName(), resource.Resource, resource.Group, object.Namespace))
	}
	if err := r.checkActsFor(ctx, caller, kind, object, wi); err != nil {
		return nil, err
	}
	facts, err := kind.Find(ctx, object.Namespace, object.Name)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(resource, object.Name)
	} else if err != nil {
		return nil, unavailable.New("look up context object %s %s/%s: %v", kind.Kind, object.Namespace, object.Name, err)
	}
	if facts.UID != object.UID {
		return nil, otherUID(resource, object, facts.UID)
	}
	if err := r.checkUse(ctx, facts.User, identityObject(wi)); err != nil {
		return nil, err
	}
	if facts.Context.Username, err = kind.Username(ctx, object.Namespace, object.Name); err != nil {
		return nil, err
	}
	return facts.Context, nil
}

func otherUID(resource schema.GroupResource, object *v1alpha1.ContextObject, uid types.UID) error {
	return apierrors.NewConflict(resource, object.Name, fmt.Errorf(
		"the context object has uid %q, the request names uid %q: perhaps it was deleted and created again", uid, object.UID))
}

// checkActsFor proves that the caller acts for the context object: it is the object itself, it may name any object as the
// context of the identity's tokens (verb assert, for the agent), or it may impersonate the object. The first right that is
// reviewed is the one by which the most requests come, those of the agent.
func (r *REST) checkActsFor(ctx context.Context, caller user.Info, kind *ContextKind, object *v1alpha1.ContextObject, wi *v1alpha1.WorkloadIdentity) error {
	// Impersonated users have no uid. A uid in the request is compared with that of the object that exists.
	if caller.GetName() == kind.UserName(object.Namespace, object.Name) && (caller.GetUID() == "" || caller.GetUID() == string(object.UID)) {
		return nil
	}
	for _, right := range []struct {
		verb   string
		object authority.Object
	}{{"assert", identityObject(wi)}, {"impersonate", kind.object(object)}} {
		if allowed, err := r.authorized(ctx, caller, right.verb, right.object); allowed || err != nil {
			return err
		}
	}
	resource := kind.Resource.GroupResource()
	return apierrors.NewForbidden(resource, object.Name, fmt.Errorf(
		"user %q may not be given a token with this context: it is not the context object, and cannot impersonate resource %q in API group %q in the namespace %q",
		caller.GetName(), resource.Resource, resource.Group, object.Namespace))
}

// object is a context object as rights name it.
func (k *ContextKind) object(object *v1alpha1.ContextObject) authority.Object {
	return authority.Object{Kind: authority.Kind{Group: k.Resource.Group, Resource: k.Resource.Resource}, Namespace: object.Namespace, Name: object.Name}
}

// identityObject is an identity as rights name it.
func identityObject(wi *v1alpha1.WorkloadIdentity) authority.Object {
	return authority.Object{Kind: authority.WorkloadIdentities, Namespace: wi.Namespace, Name: wi.Name}
}

func (r *REST) checkUse(ctx context.Context, info user.Info, wi authority.Object) error {
	if allowed, err := r.authorized(ctx, info, "use", wi); err != nil {
		return err
	} else if !allowed {
		return apierrors.NewForbidden(v1alpha1.Resource(wi.Resource), wi.Name, rights.CannotUse("context object", info.GetName(), wi))
	}
	return nil
}

func (r *REST) authorized(ctx context.Context, subject user.Info, verb string, object authority.Object) (bool, error) {
	return rights.Granted(ctx, r.Authorizer, subject, verb, object)
}
