package delivery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/identity"
)

// Identities finds identities of the identity cluster. Its errors are those of the API.
type Identities interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
	// Read is Get without what is remembered: a request to the identity cluster.
	Read(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
	// Retain drops all namespaces but those that keep reports.
	Retain(keep func(namespace string) bool)
}

// Tokens requests tokens of the identity with a uid: another one of the same name is refused. The context is nil for a token
// without one, the duration 0 for the server's default. Its errors are those of the API.
type Tokens interface {
	Token(ctx context.Context, name types.NamespacedName, uid types.UID, object *v1alpha1.ContextObject, duration time.Duration) (identity.Token, error)
}

// Keys returns the revoked signing keys.
type Keys interface {
	Revoked(keyID string) bool
}

// mayUse reviews whether a user of the workload cluster may use an identity. An error is an outage, not a denial: an authorizer that
// failed might have allowed.
func mayUse(ctx context.Context, reviews authority.Reviewer, user authority.Subject, identity types.NamespacedName) (bool, error) {
	q := authority.Use(user, authority.WorkloadIdentities, identity.Namespace, identity.Name)
	answer, err := authority.Ask(ctx, reviews, q)
	if err == nil && answer.Undecided != "" {
		err = fmt.Errorf("review whether %s: %s", q, answer.Undecided)
	}
	return answer.Allowed, err
}

// accountUser is a service account as a user.
func accountUser(account types.NamespacedName, uid types.UID) authority.Subject {
	return authority.ServiceAccount(account.Namespace, account.Name, string(uid))
}
