package credentialsbinding

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// reasonFound is the reason of a condition Ready that is True.
const reasonFound = "Found"

// Gives reports whether a binding gives its identity, as far as its status shows. One that was not looked at yet does: it was checked when it
// was written.
func Gives(binding *v1alpha1.CredentialsBinding) bool {
	return binding.WorkloadIdentityRef != nil && (binding.Status.ObservedGeneration == 0 || binding.Status.CredentialsUID != "")
}

// finding is the reason and message of a condition Ready. Without a reason the binding has no such condition.
type finding struct{ reason, message string }

// Error is why a binding does not give an identity that exists.
func (f finding) Error() string { return f.message }

// examine returns the status of a binding, but for its conditions. An identity of another uid than before is accepted if the user who wrote
// the reference may use it now, and if it is for the provider and of the account of the binding. secret is the uid of a Secret that is given.
func (r references) examine(ctx context.Context, binding *v1alpha1.CredentialsBinding, secret types.UID) (v1alpha1.CredentialsBindingStatus, finding, error) {
	status, to := *binding.Status.DeepCopy(), binding.WorkloadIdentityRef
	status.ObservedGeneration = binding.Generation
	if to == nil {
		if status.CredentialsUID = cmp.Or(secret, status.CredentialsUID); status.CredentialsUID == "" {
			return status, finding{}, nil
		}
		return status, finding{reasonFound, "the binding gives the data of Secret " + nameOf(binding.SecretRef)}, nil
	}
	wi, err := r.find(ctx, to)
	if err == nil && (wi.UID == "" || wi.UID != status.CredentialsUID) {
		err = r.accept(ctx, binding, wi)
	}
	if apierrors.IsNotFound(err) {
		err = finding{"NotFound", "does not exist: the binding gives nothing until it does"}
	}
	if refused := (finding{}); errors.As(err, &refused) {
		status.CredentialsUID = ""
		return status, finding{refused.reason, fmt.Sprintf("WorkloadIdentity %s %s", nameOf(to), refused.message)}, nil
	} else if err != nil {
		return status, finding{}, err
	}
	status.CredentialsUID = wi.UID
	if config, known := configOf(wi); known && config != nil {
		status.Account = accountOf(config)
	}
	return status, finding{reasonFound, "the binding gives tokens of WorkloadIdentity " + nameOf(to)}, nil
}

// accept checks an identity that a binding has not given before, and holds it. The error is a finding, or one of the API.
func (r references) accept(ctx context.Context, binding *v1alpha1.CredentialsBinding, wi *v1alpha1.WorkloadIdentity) error {
	if err := r.checkWriter(ctx, binding); apierrors.IsForbidden(err) {
		return finding{"WriterNotAllowed", fmt.Sprintf("appeared after the reference to it was written, and user %q, who wrote that, may not use it now: another user deletes the binding and creates it again",
			binding.Status.Writer.Username)}
	} else if err != nil {
		return err
	}
	if fault := unfit(wi, binding); fault != "" {
		return finding{"OtherProvider", fault}
	}
	if fault := moved(binding.Status.Account, wi); fault != "" {
		return finding{"OtherAccount", "is of another account than the identity before it: " + fault + "; make another binding"}
	}
	to := binding.WorkloadIdentityRef
	err := r.identities.Hold(request.WithNamespace(ctx, to.Namespace), to.Name, false)
	if apierrors.IsConflict(err) {
		return finding{"OtherProvider", "is being deleted: it takes no new references"}
	}
	return err
}

// checkWriter is 403 if the user who wrote the reference of a binding may not write it now. Bindings that were written before writers were
// recorded pass.
func (r references) checkWriter(ctx context.Context, binding *v1alpha1.CredentialsBinding) error {
	writer := binding.Status.Writer
	if writer == nil {
		return nil
	}
	return r.checkRights(ctx, &user.DefaultInfo{Name: writer.Username, UID: writer.UID, Groups: writer.Groups}, binding.Name, binding, "")
}

// settle brings the status of a binding up to date, and returns the binding with it. secret is the uid of a Secret that is given.
func (r *REST) settle(ctx context.Context, binding *v1alpha1.CredentialsBinding, secret types.UID) (*v1alpha1.CredentialsBinding, error) {
	status, found, err := r.references.examine(ctx, binding, secret)
	if err != nil {
		return binding, fmt.Errorf("look at the credentials of CredentialsBinding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	if found.reason == "" || found.reason == reasonFound {
		if missing, err := r.limits.missing(ctx, binding); err != nil {
			return binding, err
		} else if missing != "" {
			found = finding{"QuotaNotFound", missing}
		}
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: found.reason, Message: found.message, ObservedGeneration: binding.Generation}
	if found.reason == reasonFound {
		ready.Status = metav1.ConditionTrue
	}
	if found.reason == "" {
		meta.RemoveStatusCondition(&status.Conditions, ready.Type)
	} else {
		meta.SetStatusCondition(&status.Conditions, ready)
	}
	if equality.Semantic.DeepEqual(status, binding.Status) {
		return binding, nil
	}
	written, _, err := r.status.Update(request.WithNamespace(ctx, binding.Namespace), binding.Name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		now := old.DeepCopyObject().(*v1alpha1.CredentialsBinding)
		if now.UID != binding.UID || now.Generation != binding.Generation {
			return nil, apierrors.NewConflict(v1alpha1.Resource("credentialsbindings"), binding.Name, errors.New("it was changed"))
		}
		status.Deliveries = now.Status.Deliveries
		if referred := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReferred); referred != nil {
			meta.SetStatusCondition(&status.Conditions, *referred)
		}
		now.Status = status
		return now, nil
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return binding, err
	}
	return written.(*v1alpha1.CredentialsBinding), nil
}

// settled returns a binding that was just stored, with its status where that is known. Otherwise Rehold, or the first request for a token,
// finds it.
func (r *REST) settled(ctx context.Context, stored runtime.Object, dryRun []string) runtime.Object {
	if dryrun.IsDryRun(dryRun) {
		return stored
	}
	binding, err := r.settle(ctx, stored.(*v1alpha1.CredentialsBinding), "")
	if err != nil {
		klog.FromContext(ctx).Error(err, "The status of a CredentialsBinding could not be written, which is tried again")
	}
	return binding
}

// Accept is 403 unless a binding gives the Secret of a uid: for each new one the right of the user who wrote the reference is reviewed.
func (r *REST) Accept(ctx context.Context, binding *v1alpha1.CredentialsBinding, secret types.UID) error {
	if binding.Status.CredentialsUID == secret {
		return nil
	}
	if err := r.references.checkWriter(ctx, binding); err != nil {
		return err
	}
	if _, err := r.settle(ctx, binding, secret); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	return nil // the next request is answered by the binding of then
}
