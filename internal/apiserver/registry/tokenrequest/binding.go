package tokenrequest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/wording"
)

// checkBinding reports whether a request names a CredentialsBinding, which then has to refer to the identity. It first reviews whether the
// caller may use the binding: without the right a caller does not learn what exists. If the agent of a workload cluster names an object,
// resolveObject has proved that the object refers to the binding.
func (r *REST) checkBinding(ctx context.Context, tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, kind *ContextKind, cluster *clusters.Cluster) (bool, error) {
	text, ok := tr.Annotations[v1alpha1.AnnotationBinding]
	if !ok {
		return false, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if problems := append(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name)...); len(problems) > 0 {
		return false, invalid(wi.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationBinding), wording.Abbreviate(text),
			"must be the namespace and the name of a CredentialsBinding, as namespace/name")})
	}
	binding := types.NamespacedName{Namespace: namespace, Name: name}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return false, apierrors.NewUnauthorized("tokens are issued by bindings to authenticated callers only")
	}
	if cluster == nil || kind == nil || kind.objects == nil {
		if err := r.checkUseOfBinding(ctx, caller, binding); err != nil {
			return false, err
		}
		if cluster != nil {
			if err := checkListed(caller, cluster, binding); err != nil {
				return false, err
			}
		}
	}
	refers, err := r.Bindings.Refers(ctx, binding, types.NamespacedName{Namespace: wi.Namespace, Name: wi.Name})
	if err == nil && !refers {
		err = apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), wi.Name, fmt.Errorf("the CredentialsBinding %s does not refer to it, or its condition %s has why it does not give it", binding, v1alpha1.ConditionReady))
	}
	return refers, err
}

func (r *REST) checkUseOfBinding(ctx context.Context, caller user.Info, binding types.NamespacedName) error {
	object := authority.Object{Kind: authority.CredentialsBindings, Namespace: binding.Namespace, Name: binding.Name}
	if allowed, err := r.authorized(ctx, caller, "use", object); err != nil {
		return err
	} else if !allowed {
		return refusedBinding(binding, "%w", rights.CannotUse("user", caller.GetName(), object))
	}
	return nil
}

// checkListed refuses a binding of a namespace that the caller's workload cluster does not list.
func checkListed(caller user.Info, cluster *clusters.Cluster, binding types.NamespacedName) error {
	if !slices.Contains(cluster.Spec.Identities.Namespaces, binding.Namespace) {
		return refusedBinding(binding, "spec.identities.namespaces of the WorkloadCluster of user %q does not list the namespace %s", caller.GetName(), binding.Namespace)
	}
	return nil
}

// checkNamed refuses a binding to which the context object does not refer, if a user of a workload cluster names it.
func checkNamed(resource schema.GroupResource, found contexts.Object, tr *v1alpha1.TokenRequest) error {
	text, ok := tr.Annotations[v1alpha1.AnnotationBinding]
	if !ok || slices.ContainsFunc(found.Bindings(), func(b types.NamespacedName) bool { return b.String() == text }) {
		return nil
	}
	return apierrors.NewForbidden(resource, tr.Spec.ContextObject.Name, fmt.Errorf("the context object does not refer to the CredentialsBinding %s", text))
}

func refusedBinding(binding types.NamespacedName, format string, args ...any) error {
	return apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), binding.Name, fmt.Errorf(format, args...))
}
