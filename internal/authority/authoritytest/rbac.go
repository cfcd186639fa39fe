package authoritytest

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/authority"
)

// RBAC is an authority.Reviewer that knows these grants, as Kubernetes' authorizer reads them.
type RBAC []Grant

// Review implements authority.Reviewer.
func (r RBAC) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	asked := spec.ResourceAttributes
	resource := asked.Resource
	if asked.Subresource != "" {
		resource += "/" + asked.Subresource
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: slices.ContainsFunc(r, func(g Grant) bool {
		return g.Namespace == asked.Namespace && concerns(g.To, spec) &&
			slices.Contains(g.Rule.APIGroups, asked.Group) && slices.Contains(g.Rule.Resources, resource) && slices.Contains(g.Rule.Verbs, asked.Verb) &&
			(len(g.Rule.ResourceNames) == 0 || slices.Contains(g.Rule.ResourceNames, asked.Name))
	})}, nil
}

func concerns(to rbacv1.Subject, spec authorizationv1.SubjectAccessReviewSpec) bool {
	switch to.Kind {
	case rbacv1.UserKind:
		return spec.User == to.Name
	case rbacv1.GroupKind:
		return slices.Contains(spec.Groups, to.Name)
	default:
		return spec.User == authority.AccountName(to.Namespace, to.Name)
	}
}
