package workloadidentity

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/identity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"
)

// REST serves the resource workloadidentities.
type REST struct {
	*genericregistry.Store
	// marks is the store for what the server writes into identities that exist.
	marks      *genericregistry.Store
	clock      clock.PassiveClock
	authorizer authorizer.UnconditionalAuthorizer
	uids       *identityuid.Store
	podTokens  *podTokens
	// taken is set once the uids of all identities are stored.
	taken  atomic.Bool
	owners owners
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// NewREST returns the storage of WorkloadIdentity objects, all of whose tokens are issued under one issuer. The authorizer reviews who may
// choose a uid.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, issuer identity.Issuer, authorizer authorizer.UnconditionalAuthorizer) (*REST, error) {
	uids, err := identityuid.New(options)
	if err != nil {
		return nil, err
	}
	r := &REST{clock: clock.RealClock{}, authorizer: authorizer, uids: uids, podTokens: newPodTokens(maxPodTokens)}
	s := strategy{Strategy: stored.NewStrategy(scheme, true), issuer: issuer}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "workloadidentities", Singular: "workloadidentity",
		Object: &v1alpha1.WorkloadIdentity{}, List: &v1alpha1.WorkloadIdentityList{}, Strategy: s, Table: newTable(clock.RealClock{}),
		BeginCreate: r.identify, Wrap: func(inner storage.Interface) storage.Interface { return remembering{inner, uids} },
	}, &generic.StoreOptions{RESTOptions: options, AttrFunc: attributes})
	if err != nil {
		uids.Destroy()
		return nil, err
	}
	marks := *store
	marks.UpdateStrategy = marksStrategy{s}
	r.Store, r.marks = store, &marks
	return r, nil
}

// ShortNames implements rest.ShortNamesProvider.
func (*REST) ShortNames() []string { return []string{"wi"} }

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }

// Get implements rest.Getter. Conditions are as they are now: no event comes when a token expires.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.Store.Get(ctx, name, options)
	if err == nil {
		settle(obj.(*v1alpha1.WorkloadIdentity), r.clock.Now())
	}
	return obj, err
}

// List implements rest.Lister, in the same way.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	obj, err := r.Store.List(ctx, options)
	if err == nil {
		list := obj.(*v1alpha1.WorkloadIdentityList)
		for i := range list.Items {
			settle(&list.Items[i], r.clock.Now())
		}
	}
	return obj, err
}

// Delete implements rest.GracefulDeleter. A deletion of an identity that is in use is warned about.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, r.warning(validate), options)
}

// DeleteCollection implements rest.CollectionDeleter, with the same warnings.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, r.warning(validate), options, list)
}

// warning warns about each identity in use before it is validated.
func (r *REST) warning(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		wi := obj.(*v1alpha1.WorkloadIdentity)
		now := r.clock.Now()
		for _, text := range []string{inUse(wi, now), r.podTokens.inUse(wi, now), stays(wi)} {
			if text != "" {
				warning.AddWarning(ctx, "", text)
			}
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}

// stays returns a warning that the deletion of an identity waits, or an empty text.
func stays(wi *v1alpha1.WorkloadIdentity) string {
	if !holds(wi) {
		return ""
	}
	return fmt.Sprintf("WorkloadIdentity %s/%s stays while CredentialsBindings refer to it, of other namespaces as well, and for at least 90 seconds; a user who may update it ends that with: credence identity release %s -n %s --force",
		wi.Namespace, wi.Name, wi.Name, wi.Namespace)
}

// inUse is a warning for a user who deletes an identity; empty if no Secret is known to request its tokens.
func inUse(wi *v1alpha1.WorkloadIdentity, now time.Time) string {
	d := sum(wi, now)
	if d.Secrets == 0 {
		return ""
	}
	text := fmt.Sprintf("WorkloadIdentity %s/%s is in use: %d Secrets request its tokens, which pods mount or other software reads; they get no more", wi.Namespace, wi.Name, d.Secrets)
	if d.Expires != nil {
		text += ", and the first of their tokens expires at " + d.Expires.UTC().Format(time.RFC3339)
	}
	return text
}

// Identity returns the WorkloadIdentity of a name in the namespace of the request, or the API error.
// It comes from the watch cache, and is shared: do not change it. One that the cache does not have is looked for in
// the storage, since it may have been created a moment ago. One whose uid is that of another identity is an error.
func (r *REST) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	obj, err := r.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		obj, err = r.Get(ctx, name, &metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	wi, ok := obj.(*v1alpha1.WorkloadIdentity)
	if !ok {
		return nil, fmt.Errorf("storage of workloadidentities returned a %T", obj)
	}
	if err := newer.Check(wi); err != nil {
		return nil, err
	}
	return wi, r.checkUID(ctx, wi)
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	wi, ok := obj.(*v1alpha1.WorkloadIdentity)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not a WorkloadIdentity", obj)
	}
	return wi.Labels, selectableFields(wi), nil
}
