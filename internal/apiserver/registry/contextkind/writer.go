package contextkind

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	compile "github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
)

// review checks the writer of a new spec. The server does not act on labels, so these need no right.
func (r *REST) review(ctx context.Context, after, before *v1alpha1.ContextKind, _ bool) error {
	if before != nil && equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		return nil
	}
	return r.permit(ctx, after)
}

// permit refuses writers who lack the rights that a ContextKind uses: the server reads the objects with its own rights, and relying parties
// believe a claim. Then it compares the claims with those of other ContextKinds.
func (r *REST) permit(ctx context.Context, kind *v1alpha1.ContextKind) error {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("ContextKinds are written by authenticated users only")
	}
	if err := r.may(ctx, caller, kind.Name, "create", authority.Object{Kind: authority.WorkloadIdentityTokens}); err != nil {
		return err
	}
	compiled, _ := compile.Compile(kind.Spec)
	for _, resource := range resources(compiled) {
		for _, verb := range []string{"get", "list", "watch"} {
			if err := r.may(ctx, caller, kind.Name, verb, authority.Object{Kind: authority.Kind{Group: resource.Group, Resource: resource.Resource}}); err != nil {
				return err
			}
		}
	}
	return r.compare(ctx, kind, compiled)
}

func resources(kind *compile.Kind) []schema.GroupResource {
	found := []schema.GroupResource{kind.Resource.GroupResource()}
	for _, related := range kind.Related {
		found = append(found, related.Resource.GroupResource())
	}
	return found
}

// may returns an error unless the caller has a right in the whole cluster.
func (r *REST) may(ctx context.Context, caller user.Info, name, verb string, object authority.Object) error {
	allowed, err := rights.Granted(ctx, r.authorizer, caller, verb, object)
	if allowed || err != nil {
		return err
	}
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	return apierrors.NewForbidden(v1alpha1.Resource("contextkinds"), name, fmt.Errorf(
		"user %q cannot %s resource %q in API group %q in the whole cluster; to write a ContextKind, you need get, list and watch on each resource that it names, and create on workloadidentities/token",
		caller.GetName(), verb, resource, object.Group))
}

// compare refuses a claim or a kind that another ContextKind has for another resource. Two that are written at the same moment can pass:
// then neither is used.
func (r *REST) compare(ctx context.Context, kind *v1alpha1.ContextKind, compiled *compile.Kind) error {
	list, err := r.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{})
	if err != nil {
		return err
	}
	for _, other := range list.(*v1alpha1.ContextKindList).Items {
		if other.Name == kind.Name {
			continue
		}
		theirs, _ := compile.Compile(other.Spec)
		if conflict := compiled.Conflict(theirs); conflict != "" {
			return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("ContextKind").GroupKind(), kind.Name, field.ErrorList{
				field.Forbidden(field.NewPath("spec"), fmt.Sprintf("%s is that of another resource in ContextKind %s", conflict, other.Name)),
			})
		}
	}
	return nil
}
