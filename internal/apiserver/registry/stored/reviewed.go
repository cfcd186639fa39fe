package stored

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Reviewed is a store of objects whose writers need more than the right to write them.
type Reviewed[T runtime.Object] struct {
	*genericregistry.Store
	// Review is an error of the API if the writer of a request may not write an object in place of an old one, which is the zero value of T for a
	// new object. It comes last, when admission and validation have accepted the object, whichever way it is written.
	Review func(ctx context.Context, object, old T, dryRun bool) error
}

// Create implements rest.Creater.
func (r *Reviewed[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, r.creation(validate, options.DryRun), options)
}

// Update implements rest.Updater. A server-side apply creates, too.
func (r *Reviewed[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	reviewed := func(ctx context.Context, obj, old runtime.Object) error {
		if update != nil {
			if err := update(ctx, obj, old); err != nil {
				return err
			}
		}
		return r.Review(ctx, obj.(T), old.(T), dryrun.IsDryRun(options.DryRun))
	}
	return r.Store.Update(ctx, name, info, r.creation(create, options.DryRun), reviewed, forceAllowCreate, options)
}

func (r *Reviewed[T]) creation(validate rest.ValidateObjectFunc, dryRun []string) rest.ValidateObjectFunc {
	return Then(validate, func(ctx context.Context, obj runtime.Object) error {
		var none T
		return r.Review(ctx, obj.(T), none, dryrun.IsDryRun(dryRun))
	})
}

// Then returns a validation that is followed by another one; the first may be nil.
func Then(first, second rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if first != nil {
			if err := first(ctx, obj); err != nil {
				return err
			}
		}
		return second(ctx, obj)
	}
}
