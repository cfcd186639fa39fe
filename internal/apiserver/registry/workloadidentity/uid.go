package workloadidentity

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/wording"
)

// GivenUID is the uid that the object of a request names. The API machinery drops it at creation; a user with the verb adopt may give it.
type GivenUID struct {
	UID types.UID
	// Unnamed is set if the name is to be generated.
	Unnamed bool
	// Applied is set for a server-side apply, in which a uid is a precondition.
	Applied bool
}

type givenKey struct{}

// WithGivenUID returns the context of a request whose object names a uid.
func WithGivenUID(ctx context.Context, given GivenUID) context.Context {
	return context.WithValue(ctx, givenKey{}, given)
}

func givenUID(ctx context.Context) (GivenUID, bool) {
	given, ok := ctx.Value(givenKey{}).(GivenUID)
	return given, ok
}

// uuids are the texts that the API server itself would give: two spellings of a UUID would be two subjects.
var uuids = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

var uidPath = field.NewPath("metadata", "uid")

// adopt gives a new object the uid of the request, if the user may choose it. It has the one of the server by now.
func (r *REST) adopt(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	finish := func(context.Context, bool) {}
	given, ok := givenUID(ctx)
	if !ok {
		return finish, nil
	}
	wi := obj.(*v1alpha1.WorkloadIdentity)
	shown := wording.Abbreviate(string(given.UID))
	granted, err := r.mayAdopt(ctx, wi)
	if err != nil {
		return nil, err
	}
	if !granted {
		if given.Applied {
			warnNotUsed(ctx, given)
			return nil, apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), wi.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", shown))
		}
		return finish, nil
	}
	var invalid *field.Error
	switch {
	case given.Unnamed:
		invalid = field.Required(field.NewPath("metadata", "name"), "an identity with a given uid needs a name: it is one that was there before")
	case !uuids.MatchString(string(given.UID)):
		invalid = field.Invalid(uidPath, shown, "must be a UUID in lower case, such as 12b580fe-1f74-4195-852b-e1a74b03496a, or be left out")
	case !r.taken.Load():
		return nil, apierrors.NewServiceUnavailable("the uids of all identities are not known yet: try again in a moment")
	}
	if invalid != nil {
		return nil, invalidField(wi, invalid)
	}
	wi.UID = given.UID
	return finish, nil
}

func invalidField(wi *v1alpha1.WorkloadIdentity, err *field.Error) error {
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind(), wi.Name, field.ErrorList{err})
}

func warnNotUsed(ctx context.Context, given GivenUID) {
	warning.AddWarning(ctx, "", fmt.Sprintf("metadata.uid %s is not used: only users with the verb adopt on workloadidentities may choose it; with another uid the identity has another subject", wording.Abbreviate(string(given.UID))))
}

func (r *REST) mayAdopt(ctx context.Context, wi *v1alpha1.WorkloadIdentity) (bool, error) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	return rights.Granted(ctx, r.authorizer, user, "adopt", authority.Object{Kind: authority.WorkloadIdentities, Namespace: wi.Namespace, Name: wi.Name})
}

// Create implements rest.Creater.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, r.takingUID(validate, options.DryRun, true), options)
}

// expectGivenUID makes the uid of an object that is applied, and is there already, a precondition again.
func expectGivenUID(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
	if given, ok := givenUID(ctx); ok && old.(*v1alpha1.WorkloadIdentity).UID != "" {
		obj.(*v1alpha1.WorkloadIdentity).UID = given.UID
	}
	return obj, nil
}

// takingUID takes the uid of a new object once it is valid. As that is for good, it comes when nothing is left that could refuse the
// object but another one of its name: with lookUp, that is looked for first.
func (r *REST) takingUID(validate rest.ValidateObjectFunc, dryRun []string, lookUp bool) rest.ValidateObjectFunc {
	return stored.Then(validate, func(ctx context.Context, obj runtime.Object) error {
		wi := obj.(*v1alpha1.WorkloadIdentity)
		if lookUp {
			if err := r.checkFree(ctx, wi.Name); err != nil {
				return err
			}
		}
		if given, ok := givenUID(ctx); ok && given.UID != wi.UID {
			warnNotUsed(ctx, given)
		}
		err := r.uids.Take(ctx, wi.UID, identityuid.Identity{Namespace: wi.Namespace, Name: wi.Name}, len(dryRun) > 0)
		if errors.Is(err, identityuid.ErrTaken) {
			return invalidField(wi, field.Invalid(uidPath, wi.UID, "is, or was, the uid of another identity: leave it out"))
		}
		return storeerr.InterpretCreateError(err, v1alpha1.Resource("workloadidentities"), wi.Name)
	})
}

// checkFree returns an error if there is an object of the name. Only one that the watch cache has is looked for in the storage.
func (r *REST) checkFree(ctx context.Context, name string) error {
	if _, err := r.Store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"}); err != nil {
		return nil
	}
	obj, err := r.Store.Get(ctx, name, &metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	exists := apierrors.NewAlreadyExists(v1alpha1.Resource("workloadidentities"), name)
	if obj.(*v1alpha1.WorkloadIdentity).DeletionTimestamp != nil {
		exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
	}
	return exists
}

// TakeUIDs stores the uids of identities that were stored without: by an earlier version, or by a backup of single objects. Of two with one
// uid, one has it, and the other is logged. Until it has succeeded, no uid is taken from a request.
func (r *REST) TakeUIDs(ctx context.Context) error {
	known, err := r.uids.Taken(ctx)
	if err != nil {
		return err
	}
	obj, err := r.Store.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{})
	if err != nil {
		return fmt.Errorf("list identities: %w", err)
	}
	for _, wi := range obj.(*v1alpha1.WorkloadIdentityList).Items {
		if known.Has(wi.UID) {
			continue
		}
		err := r.uids.Take(ctx, wi.UID, identityuid.Identity{Namespace: wi.Namespace, Name: wi.Name}, false)
		if errors.Is(err, identityuid.ErrTaken) {
			klog.FromContext(ctx).Error(err, "Two identities have one uid", "uid", wi.UID, "namespace", wi.Namespace, "name", wi.Name)
			continue
		}
		if err != nil {
			return fmt.Errorf("store uid %s of WorkloadIdentity %s/%s: %w", wi.UID, wi.Namespace, wi.Name, err)
		}
	}
	r.taken.Store(true)
	return nil
}

// Destroy implements rest.Storage.
func (r *REST) Destroy() {
	r.Store.Destroy()
	r.uids.Destroy()
}
