package workloadidentity

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
)

// maxOwners bounds how many uids are remembered with their identities.
const maxOwners = 100_000

// owners are the identities that uids were found to be of. The zero value is empty.
type owners struct {
	mu  sync.RWMutex
	all map[types.UID]identityuid.Identity
}

func (o *owners) add(uid types.UID, of identityuid.Identity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil || len(o.all) >= maxOwners {
		o.all = map[types.UID]identityuid.Identity{}
	}
	o.all[uid] = of
}

// checkUID refuses an identity with the uid, and so the subject, of another one. Only what was stored past this API can be such an identity.
// While the uids can't be read, nothing is refused.
func (r *REST) checkUID(ctx context.Context, wi *v1alpha1.WorkloadIdentity) error {
	r.owners.mu.RLock()
	of, known := r.owners.all[wi.UID]
	r.owners.mu.RUnlock()
	if known && of == nameOf(wi) {
		return nil
	}
	err := r.uids.Take(ctx, wi.UID, nameOf(wi), true)
	switch {
	case errors.Is(err, identityuid.ErrTaken) || err == nil && known:
		klog.FromContext(ctx).Error(identityuid.ErrTaken, "An identity has the uid of another one, and gets no tokens", "uid", wi.UID, "namespace", wi.Namespace, "name", wi.Name)
		return apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), wi.Name, fmt.Errorf(
			"its uid %s is that of another identity, and so would its subject be: it was not stored by this API; delete it and create it again, without a uid", wi.UID))
	case err == nil:
		r.owners.add(wi.UID, nameOf(wi))
	default:
		klog.FromContext(ctx).Error(err, "Whether the uid of an identity is that of another one is not known", "uid", wi.UID)
	}
	return nil
}
