package pods

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// foreignSecrets refuses a pod that names a token Secret of another service account, in any field. Where tokens are not stored, a new pod names
// none at all: the agent would take it for one that was admitted before that was chosen, and make the Secret.
func foreignSecrets(r Request) *Denial {
	var own []string
	carriesTokens := func(name string) bool { return strings.HasPrefix(name, tokensecret.NamePrefix) }
	for name, where := range profile.References(r.Pod, r.Ephemeral, carriesTokens) {
		if r.Ephemeral == nil && r.Delivery == v1alpha1.DeliveryCSI {
			return decision.Forbidden(fmt.Sprintf("%s of the pod names Secret %q: in namespace %s tokens are delivered by volumes of CSI driver %s, and new pods have no Secrets with the prefix %s: remove the reference; the volume is added when the pod is created",
				where, wording.Abbreviate(name), r.Namespace, v1alpha1.CSIDriver, tokensecret.NamePrefix))
		}
		if own == nil {
			own = ownSecrets(r.Account)
		}
		if !slices.Contains(own, name) {
			return decision.Forbidden(fmt.Sprintf("%s of the pod names Secret %q: Secrets with the prefix %s carry tokens for the pods of one service account, and this one is not for service account %s/%s: remove the reference, and give the pod the service account whose identities it needs",
				where, wording.Abbreviate(name), tokensecret.NamePrefix, r.Namespace, r.Account.Name))
		}
	}
	return nil
}

func ownSecrets(account Account) []string {
	names := make([]string, 0, len(account.Identities))
	for _, identity := range account.Identities {
		names = append(names, tokensecret.NameFor(account.Name, identity.Name))
	}
	return names
}
