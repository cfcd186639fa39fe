package credentialsbinding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
)

// Holds keeps identities that are being deleted while bindings refer to them.
type Holds interface {
	Held(ctx context.Context) ([]v1alpha1.WorkloadIdentity, error)
	// Refer is called with the names of the bindings that refer to an identity; without any it is released.
	Refer(ctx context.Context, held *v1alpha1.WorkloadIdentity, bindings []string) error
}

// settled is how long after its deletion an identity is not released. A binding that was checked before the deletion is stored by then: no
// request takes longer than a minute, and the clocks of replicas may differ by half of one.
const settled = 90 * time.Second

// Release releases the identities to which no binding refers any more, and writes into the others which bindings refer to them. Each
// replica may call it.
func (r *REST) Release(ctx context.Context, holds Holds, now time.Time) error {
	held, err := holds.Held(ctx)
	if err != nil || len(held) == 0 {
		return err
	}
	obj, err := r.Store.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{})
	if err != nil {
		return fmt.Errorf("list bindings: %w", err)
	}
	return release(ctx, holds, held, obj.(*v1alpha1.CredentialsBindingList).Items, now)
}

func release(ctx context.Context, holds Holds, held []v1alpha1.WorkloadIdentity, items []v1alpha1.CredentialsBinding, now time.Time) error {
	referrers := map[v1alpha1.CredentialsReference][]string{}
	for _, binding := range items {
		if to := binding.WorkloadIdentityRef; Gives(&binding) {
			referrers[*to] = append(referrers[*to], binding.Namespace+"/"+binding.Name)
		}
	}
	var errs []error
	for i := range held {
		wi := &held[i]
		bindings := referrers[v1alpha1.CredentialsReference{Namespace: wi.Namespace, Name: wi.Name}]
		if len(bindings) == 0 && now.Sub(wi.DeletionTimestamp.Time) < settled {
			continue
		}
		slices.Sort(bindings)
		if err := holds.Refer(ctx, wi, bindings); err != nil {
			errs = append(errs, fmt.Errorf("release WorkloadIdentity %s/%s: %w", wi.Namespace, wi.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Rehold looks at what bindings refer to, which may have appeared. It holds the identities that are not held, after a restore, and the
// bindings that are in use.
func (r *REST) Rehold(ctx context.Context) error {
	obj, err := r.Store.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list bindings: %w", err)
	}
	items := slices.Clone(obj.(*v1alpha1.CredentialsBindingList).Items)
	var errs []error
	for i := range items {
		settled, err := r.settle(ctx, &items[i], "")
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
		items[i] = *settled
		if err := r.keep(ctx, settled); err != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("hold CredentialsBinding %s/%s: %w", settled.Namespace, settled.Name, err))
		}
	}
	return errors.Join(append(errs, r.references.rehold(ctx, items))...)
}

func (r references) rehold(ctx context.Context, bindings []v1alpha1.CredentialsBinding) error {
	seen := map[v1alpha1.CredentialsReference]bool{}
	var errs []error
	for _, binding := range bindings {
		to := binding.WorkloadIdentityRef
		if !Gives(&binding) || seen[*to] {
			continue
		}
		seen[*to] = true
		wi, err := r.find(ctx, to)
		if err == nil && wi.DeletionTimestamp == nil && !slices.Contains(wi.Finalizers, v1alpha1.FinalizerBindings) {
			err = r.identities.Hold(request.WithNamespace(ctx, to.Namespace), to.Name, false)
		}
		// One that is deleted meanwhile is not held any more.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("hold WorkloadIdentity %s: %w", nameOf(to), err))
		}
	}
	return errors.Join(errs...)
}

// Refers reports whether a binding gives an identity. A binding that does not, as far as the watch cache knows, is read from the storage. An
// identity that the binding has not given before is looked at first.
func (r *REST) Refers(ctx context.Context, binding, identity types.NamespacedName) (bool, error) {
	ctx = request.WithNamespace(ctx, binding.Namespace)
	for _, version := range []string{"0", ""} {
		obj, err := r.Store.Get(ctx, binding.Name, &metav1.GetOptions{ResourceVersion: version})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return false, err
		}
		found := obj.(*v1alpha1.CredentialsBinding)
		if err := newer.Check(found); err != nil {
			return false, err
		}
		to := found.WorkloadIdentityRef
		if to == nil || to.Namespace != identity.Namespace || to.Name != identity.Name {
			continue
		}
		if wi, err := r.references.find(ctx, to); err == nil && wi.UID == found.Status.CredentialsUID {
			return true, nil
		}
		if settled, err := r.settle(ctx, found, ""); err == nil || version == "" {
			return err == nil && Gives(settled), err
		}
	}
	return false, nil
}
