package keyring

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// InitializationREST serves the subresource keyrings/initialization, also without a KeyRing: it may be lost.
type InitializationREST struct {
	Commands
	// Resumed is called after a ring was resumed or made.
	Resumed func()
}

var (
	_ rest.NamedCreater             = &InitializationREST{}
	_ rest.GroupVersionKindProvider = &InitializationREST{}
)

// New implements rest.Storage.
func (*InitializationREST) New() runtime.Object { return &v1alpha1.KeyInitialization{} }

// Destroy implements rest.Storage.
func (*InitializationREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*InitializationREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("KeyInitialization")
}

// Create goes on with the stored ring, or with a new one, or with dryRun returns the result that it would have.
func (r *InitializationREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*v1alpha1.KeyInitialization)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a KeyInitialization", obj))
	}
	asked = asked.DeepCopy()
	asked.Status, asked.ManagedFields = v1alpha1.KeyInitializationStatus{}, nil
	if err := settleName(&asked.ObjectMeta, name, "KeyInitialization"); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, asked.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if name != v1alpha1.WorkloadIdentities {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("keyrings"), name)
	}
	dryRun := isDryRun(options)
	if err := checkInitialization(name, asked.Spec, dryRun); err != nil {
		return nil, err
	}
	cause, err := causeOf(ctx, asked.Spec.Reason)
	if err != nil {
		return nil, err
	}
	known, err := r.KeyRings.KeyRing(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	operator := r.operator(name)
	if operator.Store == nil {
		return nil, failure(name, errExternal)
	}
	if known == nil {
		operator.View = func(context.Context) (keys.View, error) { return keys.View{}, nil }
	}
	outcome, err := operator.Resume(ctx, cause, dryRun)
	if err != nil {
		return nil, failure(name, err)
	}
	if !outcome.Changed && known != nil {
		return nil, failure(name, &keys.Refused{Reason: keys.AlreadyDone, Message: "there is nothing to initialize: the stored keys know all that is known of their past"})
	}
	asked.Status = answer(outcome)
	if dryRun {
		return asked, nil
	}
	if err := r.KeyRings.Ensure(ctx, name); err != nil {
		return nil, failure(name, fmt.Errorf("%w: %w", operation.ErrUnknownOutcome, err))
	}
	annotate(ctx, outcome, cause.Reason)
	r.Resumed()
	return asked, nil
}

func checkInitialization(name string, spec v1alpha1.KeyInitializationSpec, dryRun bool) error {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if !spec.AcceptLoss && !dryRun {
		errs = append(errs, field.Invalid(path.Child("acceptLoss"), false, "must be true: tokens of keys that are lost are refused, and what the storage has forgotten stays forgotten. Put a backup back if there is one"))
	}
	if spec.Reason == "" {
		errs = append(errs, field.Required(path.Child("reason"), "give the reason: it is recorded in the ring's history"))
	}
	if len(errs) > 0 {
		return invalid("KeyInitialization", name, errs...)
	}
	return nil
}

func answer(outcome operation.Outcome) v1alpha1.KeyInitializationStatus {
	status := v1alpha1.KeyInitializationStatus{Made: outcome.Made}
	for _, event := range outcome.Events {
		switch event.Kind {
		case keys.Removed:
			status.Lost = append(status.Lost, string(event.Key))
		case keys.Revoked:
			status.Revoked = append(status.Revoked, string(event.Key))
		}
	}
	for _, algorithm := range keys.Algorithms() {
		if _, signs := outcome.Ring.Signer(algorithm); !signs {
			next, at := report.Next(outcome.Ring, algorithm, outcome.View)
			status.Unsigned = append(status.Unsigned, v1alpha1.UnsignedAlgorithm{Algorithm: string(algorithm), NextKey: next, NextAt: at})
		}
	}
	return status
}
