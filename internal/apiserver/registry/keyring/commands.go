package keyring

import (
	"context"
	"fmt"
	"slices"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/identity"
	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
	"github.com/credence-id/credence/internal/wording"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Commands carry out requests about the ring in the key store. The View of the Operator is set here.
type Commands struct {
	KeyRings *REST
	Operator operation.Operator
}

// operator decides by the KeyRing of a name.
func (c Commands) operator(name string) operation.Operator {
	o := c.Operator
	o.View = func(ctx context.Context) (keys.View, error) {
		ring, err := c.KeyRings.KeyRing(ctx, name)
		if err != nil {
			return keys.View{}, err
		}
		if err := newer.Check(ring); err != nil {
			return keys.View{}, err
		}
		view := report.View(ring)
		// Other writers than the key controller may have written the status.
		if view.Settings, err = view.Settings.Complete(); err != nil {
			return keys.View{}, apierrors.NewConflict(v1alpha1.Resource("keyrings"), name, fmt.Errorf(
				"its status has settings by which no key can be changed: %w; the key controller puts them right when it runs", err))
		}
		return view, nil
	}
	return o
}

// errExternal: there is no ring here to change.
var errExternal = &keys.Refused{Reason: "ExternalSigner", Message: "the keys are those of an external signer: rotate and revoke them there"}

// causeOf is the user of a request and the reason.
func causeOf(ctx context.Context, reason string) (keys.Cause, error) {
	user, ok := request.UserFrom(ctx)
	if !ok || user.GetName() == "" {
		return keys.Cause{}, apierrors.NewUnauthorized("keys are changed for authenticated callers only")
	}
	return keys.Cause{By: recordable(user.GetName()), Reason: reason}, nil
}

// RotationREST serves the subresource keyrings/rotation.
type RotationREST struct{ Commands }

var (
	_ rest.NamedCreater             = &RotationREST{}
	_ rest.GroupVersionKindProvider = &RotationREST{}
)

// New implements rest.Storage.
func (*RotationREST) New() runtime.Object { return &v1alpha1.KeyRotation{} }

// Destroy implements rest.Storage.
func (*RotationREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*RotationREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("KeyRotation")
}

// Create rotates, or with dryRun returns the result that it would have.
func (r *RotationREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	rotation, ok := obj.(*v1alpha1.KeyRotation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a KeyRotation", obj))
	}
	rotation = rotation.DeepCopy()
	rotation.Status, rotation.ManagedFields = v1alpha1.KeyRotationStatus{}, nil
	if err := settleName(&rotation.ObjectMeta, name, "KeyRotation"); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, rotation.DeepCopy()); err != nil {
			return nil, err
		}
	}
	algorithm := identity.Algorithm(rotation.Spec.Algorithm)
	if !slices.Contains(keys.Algorithms(), algorithm) {
		return nil, invalid("KeyRotation", name, field.NotSupported(field.NewPath("spec", "algorithm"), identity.Algorithm(wording.Abbreviate(rotation.Spec.Algorithm)), keys.Algorithms()))
	}
	cause, err := causeOf(ctx, rotation.Spec.Reason)
	if err != nil {
		return nil, err
	}
	command := keys.Command{
		Algorithm: algorithm, Key: identity.KeyID(rotation.Spec.ActiveKey), AcceptRefusals: rotation.Spec.AcceptRefusals, Cause: cause,
	}
	operator := r.operator(name)
	if operator.Store == nil {
		return nil, failure(name, errExternal)
	}
	do := operation.Rotate(command)
	if rotation.Spec.Now {
		do = operator.RotateNow(command)
	}
	outcome, err := operator.Do(ctx, do, isDryRun(options))
	if err != nil {
		return nil, failure(name, err)
	}
	rotation.Status = report.Rotation(outcome.Before, outcome.Ring, outcome.View, algorithm, rotation.Spec.Now)
	annotate(ctx, outcome, cause.Reason)
	return rotation, nil
}

// RevocationREST serves the subresource keyrings/revocation.
type RevocationREST struct{ Commands }

var (
	_ rest.NamedCreater             = &RevocationREST{}
	_ rest.GroupVersionKindProvider = &RevocationREST{}
)

// New implements rest.Storage.
func (*RevocationREST) New() runtime.Object { return &v1alpha1.KeyRevocation{} }

// Destroy implements rest.Storage.
func (*RevocationREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*RevocationREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("KeyRevocation")
}

// Create revokes a key, or with dryRun returns the result that it would have.
func (r *RevocationREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	revocation, ok := obj.(*v1alpha1.KeyRevocation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a KeyRevocation", obj))
	}
	revocation = revocation.DeepCopy()
	revocation.Status, revocation.ManagedFields = v1alpha1.KeyRevocationStatus{}, nil
	if err := settleName(&revocation.ObjectMeta, name, "KeyRevocation"); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, revocation.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if err := checkRevocation(name, revocation.Spec); err != nil {
		return nil, err
	}
	cause, err := causeOf(ctx, revocation.Spec.Reason)
	if err != nil {
		return nil, err
	}
	operator := r.operator(name)
	if operator.Store == nil {
		return nil, failure(name, errExternal)
	}
	outcome, err := operator.Do(ctx, operator.Revoke(keys.Command{
		Key: identity.KeyID(revocation.Spec.Key), AcceptRefusals: revocation.Spec.AcceptRefusals, Cause: cause,
	}), isDryRun(options))
	if err != nil {
		return nil, failure(name, err)
	}
	// A server that was cut off meanwhile must not bring the key back, should the store lose the ring.
	if outcome.Changed && !isDryRun(options) {
		if err := r.KeyRings.Remember(ctx, name, keys.Past{Revoked: outcome.Ring.Compromised, Revision: outcome.Ring.Revision}); err != nil {
			return nil, failure(name, fmt.Errorf("the key was revoked, but other servers may not know of it: %w: %w", operation.ErrUnknownOutcome, err))
		}
	}
	revocation.Status = report.Revocation(outcome.Before, outcome.Ring, outcome.View, identity.KeyID(revocation.Spec.Key))
	annotate(ctx, outcome, cause.Reason)
	return revocation, nil
}

func checkRevocation(name string, spec v1alpha1.KeyRevocationSpec) error {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if spec.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), "name the key to revoke by its ID"))
	} else if !keys.WellFormed(identity.KeyID(spec.Key)) {
		errs = append(errs, field.Invalid(path.Child("key"), wording.Abbreviate(spec.Key), "must be the ID of a key: 43 characters of base64url"))
	}
	if spec.Reason == "" {
		errs = append(errs, field.Required(path.Child("reason"), "give the reason: it is recorded in the ring's history"))
	}
	if len(errs) > 0 {
		return invalid("KeyRevocation", name, errs...)
	}
	return nil
}

// settleName gives a request the name in its URL.
func settleName(meta *metav1.ObjectMeta, name, kind string) error {
	if meta.Name != "" && meta.Name != name {
		return invalid(kind, wording.Abbreviate(meta.Name), field.Invalid(field.NewPath("metadata", "name"), wording.Abbreviate(meta.Name), fmt.Sprintf("must be empty or the name of the KeyRing in the URL, %q", name)))
	}
	meta.Name = name
	return nil
}

func isDryRun(options *metav1.CreateOptions) bool {
	return options != nil && len(options.DryRun) > 0
}
