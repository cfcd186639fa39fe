package keys

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/targets"
)

// howToFindIdentities returns the command by which a user with other rights finds the identities whose tokens must be renewed.
func howToFindIdentities(algorithm string) string {
	with := func(wanted bool) string {
		var types []string
		for _, name := range targets.Types() {
			if (targets.Algorithm(name) == identity.Algorithm(algorithm)) == wanted {
				types = append(types, name)
			}
		}
		return strings.Join(slices.Sorted(slices.Values(types)), ", ")
	}
	which := "the types " + with(true)
	// A type that has no row in the table takes this one.
	if targets.Algorithm("") == identity.Algorithm(algorithm) {
		which = "all types but " + with(false)
	}
	return fmt.Sprintf("Tokens of target systems of %s are signed with %s. A user who may list identities finds them by:\n"+
		"  kubectl get workloadidentities -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,TYPE:.spec.targetSystem.type", which, algorithm)
}

// identitiesSignedWith lists the identities of all namespaces whose target system takes an algorithm, as rows of namespace,
// name and type.
func identitiesSignedWith(ctx context.Context, a *cluster.API, algorithm identity.Algorithm) ([][]string, error) {
	var rows [][]string
	err := cluster.Each(ctx, a, cluster.Identities(""), func(item *v1alpha1.WorkloadIdentity) {
		if targets.Algorithm(item.Spec.TargetSystem.Type) == algorithm {
			rows = append(rows, []string{item.Namespace, item.Name, item.Spec.TargetSystem.Type})
		}
	})
	return rows, err
}
