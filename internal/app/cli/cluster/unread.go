package cluster

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	api "github.com/credence-id/credence/internal/cluster"
)

// unread returns the namespaces of identities and bindings that objects on a cluster use and its agent may not read, in their order. The requests
// are the agent's: the API server lists what that agent has to deliver, and no other cluster's.
func unread(ctx context.Context, agent *api.API) ([]string, error) {
	used := map[string]sets.Set[string]{"workloadidentities": sets.New[string](), "credentialsbindings": sets.New[string]()}
	err := api.Each(ctx, agent, api.Listing{API: identityAPI, Resource: "contextdeliveries"}, func(d *v1alpha1.ContextDelivery) {
		for resource, reference := range map[string]*v1alpha1.NamespacedReference{"workloadidentities": d.Spec.WorkloadIdentity, "credentialsbindings": d.Spec.CredentialsBinding} {
			if reference != nil {
				used[resource].Insert(reference.Namespace)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	denied := sets.New[string]()
	for resource, namespaces := range used {
		for _, namespace := range sets.List(namespaces) {
			for _, verb := range []string{"list", "watch"} {
				review, err := agent.ReviewSelf(ctx, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: authenticationv1alpha1.GroupName, Resource: resource})
				if err != nil {
					return nil, err
				}
				if !review.Allowed {
					denied.Insert(namespace)
				}
			}
		}
	}
	return sets.List(denied), nil
}
