package delivery

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/tokensecret"
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

// Reviews reviews what users of the workload cluster may do. An error is an outage, not a denial.
type Reviews interface {
	MayUse(ctx context.Context, user tokensecret.User, identity types.NamespacedName) (bool, error)
}

// accountUser is a service account as a user.
func accountUser(account types.NamespacedName, uid types.UID) tokensecret.User {
	return tokensecret.User{
		Name: "system:serviceaccount:" + account.Namespace + ":" + account.Name, UID: string(uid),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace},
	}
}
