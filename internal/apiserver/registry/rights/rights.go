// Package rights reviews rights that a request needs beside the one by which it came in. In go a user, a verb and an object, out comes
// whether the cluster grants it. It keeps no answers.
package rights

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/authority"
)

// Granted separates a denial from an outage: only the first is an answer. The error is 503.
func Granted(ctx context.Context, reviewer authorizer.UnconditionalAuthorizer, subject user.Info, verb string, object authority.Object) (bool, error) {
	decision, _, err := reviewer.Authorize(ctx, authorizer.AttributesRecord{
		User: subject, Verb: verb, Namespace: object.Namespace, Name: object.Name, ResourceRequest: true,
		APIGroup: object.Group, APIVersion: "*", Resource: object.Resource, Subresource: object.Subresource,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, unavailable.New("review whether %q may %s %s: %v", subject.GetName(), verb, object.Resource, err)
	}
	return false, nil
}

// CannotUse is why a user, or a context object, of a name may not use an object, and names those who can grant it.
func CannotUse(kind, name string, object authority.Object) error {
	return fmt.Errorf("%s %q cannot use resource %q in API group %q in the namespace %q: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter there, can grant it the verb use",
		kind, name, object.Resource, object.Group, object.Namespace)
}
