package apiservertest

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// All is the right to do everything.
const All = "*"

// Rights are what every caller may do, as "VERB RESOURCE NAMESPACE/NAME", with a subresource in the resource; the object is left out of a
// right in the whole cluster.
type Rights []string

// Authorize implements authorizer.UnconditionalAuthorizer.
func (r Rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	right := a.GetVerb() + " " + a.GetResource()
	if a.GetSubresource() != "" {
		right += "/" + a.GetSubresource()
	}
	if a.GetNamespace() != "" || a.GetName() != "" {
		right += " " + a.GetNamespace() + "/" + a.GetName()
	}
	if slices.Contains(r, All) || slices.Contains(r, right) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// Away is an authorizer that can't be reached.
type Away struct{ Err error }

// Authorize implements authorizer.UnconditionalAuthorizer.
func (a Away) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", a.Err
}

// As returns the context of a request of a user, in a namespace or, if it is empty, in none.
func As(ctx context.Context, name, namespace string) context.Context {
	return request.WithUser(request.WithNamespace(ctx, namespace), &user.DefaultInfo{Name: name})
}
