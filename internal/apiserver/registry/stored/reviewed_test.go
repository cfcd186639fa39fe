package stored

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

type kind = v1alpha1.WorkloadCluster

// strategy is that of a kind that adds nothing.
type strategy struct{ Strategy }

func (strategy) Validate(context.Context, runtime.Object) field.ErrorList         { return nil }
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// one is a storage that has one object, or nothing.
type one struct {
	storage.Interface
	stored *kind
}

func (o *one) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (o *one) Get(_ context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if o.stored != nil {
		o.stored.DeepCopyInto(out.(*kind))
	} else if !options.IgnoreNotFound {
		return storage.NewKeyNotFoundError(key, 0)
	}
	return nil
}

func (o *one) Create(_ context.Context, _ string, obj, out runtime.Object, _ uint64) error {
	o.stored = obj.(*kind)
	o.stored.DeepCopyInto(out.(*kind))
	return nil
}

func (o *one) GuaranteedUpdate(_ context.Context, _ string, out runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	existing, version := &kind{}, storage.ResponseMeta{}
	if o.stored != nil {
		existing, version.ResourceVersion = o.stored.DeepCopy(), 1
	}
	changed, _, err := update(existing, version)
	if err != nil {
		return err
	}
	o.stored = changed.(*kind)
	o.stored.DeepCopyInto(out.(*kind))
	return nil
}

// Whichever way an object is written, its writer is reviewed, after the object was validated.
func TestReviewed(t *testing.T) {
	scheme := runtime.NewScheme()
	testkit.Must(t, v1alpha1.AddToScheme(scheme))
	s := strategy{NewStrategy(scheme, false)}
	wanted := &kind{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}}
	fresh := &kind{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	update := func(r *Reviewed[*kind], object *kind, force bool) func(rest.ValidateObjectFunc, []string) error {
		return func(validate rest.ValidateObjectFunc, dryRun []string) error {
			_, _, err := r.Update(request.WithNamespace(t.Context(), ""), "east", rest.DefaultUpdatedObjectInfo(object.DeepCopy()), validate,
				func(ctx context.Context, obj, _ runtime.Object) error { return validate(ctx, obj) }, force, &metav1.UpdateOptions{DryRun: dryRun})
			return err
		}
	}
	for name, way := range map[string]struct {
		before *kind
		write  func(r *Reviewed[*kind]) func(rest.ValidateObjectFunc, []string) error
	}{
		"create": {nil, func(r *Reviewed[*kind]) func(rest.ValidateObjectFunc, []string) error {
			return func(validate rest.ValidateObjectFunc, dryRun []string) error {
				_, err := r.Create(request.WithNamespace(t.Context(), ""), fresh.DeepCopy(), validate, &metav1.CreateOptions{DryRun: dryRun})
				return err
			}
		}},
		"create by server-side apply": {nil, func(r *Reviewed[*kind]) func(rest.ValidateObjectFunc, []string) error { return update(r, fresh, true) }},
		"update": {wanted, func(r *Reviewed[*kind]) func(rest.ValidateObjectFunc, []string) error {
			return update(r, wanted, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			var refused error
			storage := &one{stored: way.before}
			r := &Reviewed[*kind]{
				Store: &registry.Store{
					NewFunc:                  func() runtime.Object { return &kind{} },
					DefaultQualifiedResource: schema.GroupResource{Resource: "kinds"},
					KeyFunc:                  func(_ context.Context, name string) (string, error) { return name, nil },
					ObjectNameFunc:           func(obj runtime.Object) (string, error) { return obj.(*kind).Name, nil },
					CreateStrategy:           s,
					UpdateStrategy:           s,
					Storage:                  registry.DryRunnableStorage{Storage: storage, Codec: serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)},
				},
				Review: func(_ context.Context, object, old *kind, dryRun bool) error {
					if (old == nil) != (way.before == nil) {
						t.Errorf("reviewed with %v as the old object, and there was %v", old, way.before)
					}
					calls = append(calls, "review")
					if dryRun {
						calls = append(calls, "dry run")
					}
					return refused
				},
			}
			validate := func(context.Context, runtime.Object) error {
				calls = append(calls, "validate")
				return nil
			}
			refused = errors.New("not allowed")
			if err := way.write(r)(validate, nil); !errors.Is(err, refused) || storage.stored != way.before {
				t.Errorf("a writer who is refused gets %v, and %v is stored", err, storage.stored)
			}
			refused = nil
			testkit.Expect(t, way.write(r)(validate, []string{metav1.DryRunAll}))
			if got, want := strings.Join(calls, ", "), "validate, review, validate, review, dry run"; got != want {
				t.Errorf("called: %s; want %s", got, want)
			}
		})
	}
}
