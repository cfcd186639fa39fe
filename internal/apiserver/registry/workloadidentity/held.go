package workloadidentity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// Held reports whether an identity is being deleted, and stays for its CredentialsBindings.
func Held(wi *v1alpha1.WorkloadIdentity) bool {
	return wi.DeletionTimestamp != nil && holds(wi)
}

// holds reports whether an identity is to stay for its CredentialsBindings once it is deleted.
func holds(wi *v1alpha1.WorkloadIdentity) bool {
	return slices.Contains(wi.Finalizers, v1alpha1.FinalizerBindings)
}

// Hold keeps the identity of a name, in the namespace of the request, until Release once it is deleted. The error is a conflict if it is
// being deleted already. The finalizer comes before the reference, and stays while the identity is not being deleted: so no replica
// releases an identity to which another one has just stored a reference.
func (r *REST) Hold(ctx context.Context, name string, dryRun bool) error {
	return r.mark(ctx, name, dryRun, func(wi *v1alpha1.WorkloadIdentity) error {
		if wi.DeletionTimestamp != nil {
			return apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), name, fmt.Errorf("it is being deleted: it takes no new references"))
		}
		if !holds(wi) {
			wi.Finalizers = append(wi.Finalizers, v1alpha1.FinalizerBindings)
		}
		return nil
	})
}

// Held returns the identities that are being deleted and stay for their CredentialsBindings, as of a moment ago.
func (r *REST) Held(ctx context.Context) ([]v1alpha1.WorkloadIdentity, error) {
	deleting := r.PredicateFunc(labels.Everything(), fields.OneTermEqualSelector(deletingField, "true"))
	obj, err := r.Store.ListPredicate(request.WithNamespace(ctx, ""), deleting, &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list identities that are being deleted: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(obj.(*v1alpha1.WorkloadIdentityList).Items), func(wi v1alpha1.WorkloadIdentity) bool { return !Held(&wi) }), nil
}

// Refer writes into a held identity which CredentialsBindings refer to it. Without any it releases the identity, and the deletion goes on.
func (r *REST) Refer(ctx context.Context, held *v1alpha1.WorkloadIdentity, bindings []string) error {
	err := r.mark(request.WithNamespace(ctx, held.Namespace), held.Name, false, func(wi *v1alpha1.WorkloadIdentity) error {
		if wi.UID != held.UID || !Held(wi) {
			return nil
		}
		if len(bindings) == 0 {
			wi.Finalizers = slices.DeleteFunc(wi.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerBindings })
			return nil
		}
		meta.SetStatusCondition(&wi.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReferred, Status: metav1.ConditionTrue, Reason: "CredentialsBindings", ObservedGeneration: wi.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
			Message: fmt.Sprintf("the deletion waits until no CredentialsBinding refers to it: %s", referrers(wi.Namespace, bindings)),
		})
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// referrers names the bindings of a namespace, and counts the others, which users who see the identity may not see.
func referrers(namespace string, bindings []string) string {
	own := slices.DeleteFunc(slices.Clone(bindings), func(binding string) bool { return !strings.HasPrefix(binding, namespace+"/") })
	others := len(bindings) - len(own)
	switch {
	case others == 0:
		return wording.Some(own)
	case len(own) == 0:
		return fmt.Sprintf("%d of other namespaces", others)
	}
	return fmt.Sprintf("%s, and %d of other namespaces", wording.Some(own), others)
}

// mark changes finalizers and conditions of an identity.
func (r *REST) mark(ctx context.Context, name string, dryRun bool, change func(*v1alpha1.WorkloadIdentity) error) error {
	options := &metav1.UpdateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, _, err := r.marks.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		wi := old.DeepCopyObject().(*v1alpha1.WorkloadIdentity)
		return wi, change(wi)
	}), nil, rest.ValidateAllObjectUpdateFunc, false, options)
	return err
}
