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
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
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

// identify gives a new object its uid: that of the request, if the user may choose it, or one that no identity can be given. By now it has
// one of the API machinery, which is left to it where nothing is stored.
func (r *REST) identify(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	wi := obj.(*v1alpha1.WorkloadIdentity)
	adopted, err := r.adopt(ctx, wi)
	if err == nil && !adopted && len(options.DryRun) == 0 {
		wi.UID, err = r.uids.Make(ctx, nameOf(wi))
		err = storeerr.InterpretCreateError(err, v1alpha1.Resource("workloadidentities"), wi.Name)
	}
	return func(context.Context, bool) {}, err
}

// adopt gives a new object the uid of the request, if the user may choose it, and reports whether it did.
func (r *REST) adopt(ctx context.Context, wi *v1alpha1.WorkloadIdentity) (bool, error) {
	given, ok := givenUID(ctx)
	if !ok {
		return false, nil
	}
	shown := wording.Abbreviate(string(given.UID))
	granted, err := r.mayAdopt(ctx, wi)
	if err != nil {
		return false, err
	}
	if !granted {
		if given.Applied {
			warnNotUsed(ctx, given)
			return false, apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), wi.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", shown))
		}
		return false, nil
	}
	var invalid *field.Error
	switch {
	case given.Unnamed:
		invalid = field.Required(field.NewPath("metadata", "name"), "an identity with a given uid needs a name: it is one that was there before")
	case !uuids.MatchString(string(given.UID)):
		invalid = field.Invalid(uidPath, shown, "must be a UUID in lower case, such as 12b580fe-1f74-4195-852b-e1a74b03496a, or be left out")
	case !r.taken.Load():
		return false, apierrors.NewServiceUnavailable("the uids of all identities are not known yet: try again in a moment")
	}
	if invalid != nil {
		return false, invalidField(wi, invalid)
	}
	wi.UID = given.UID
	return true, nil
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

// takingUID takes the uid that a user has chosen, once the new object is valid. As that is for good, it comes when nothing is left that could
// refuse the object but another one of its name: with lookUp, that is looked for first.
func (r *REST) takingUID(validate rest.ValidateObjectFunc, dryRun []string, lookUp bool) rest.ValidateObjectFunc {
	return stored.Then(validate, func(ctx context.Context, obj runtime.Object) error {
		wi := obj.(*v1alpha1.WorkloadIdentity)
		given, ok := givenUID(ctx)
		if !ok {
			return nil
		}
		if lookUp {
			if err := r.checkFree(ctx, wi.Name); err != nil {
				return err
			}
		}
		if given.UID != wi.UID {
			warnNotUsed(ctx, given)
			return nil
		}
		err := r.uids.Take(ctx, wi.UID, nameOf(wi), len(dryRun) > 0)
		if errors.Is(err, identityuid.ErrTaken) {
			return invalidField(wi, field.Invalid(uidPath, wi.UID, "is, or was, the uid of another identity: leave it out"))
		}
		return storeerr.InterpretCreateError(err, v1alpha1.Resource("workloadidentities"), wi.Name)
	})
}

func nameOf(wi *v1alpha1.WorkloadIdentity) identityuid.Identity {
	return identityuid.Identity{Namespace: wi.Namespace, Name: wi.Name}
}

// remembering is a storage of identities that stores the uid of each for good before it deletes it.
type remembering struct {
	storage.Interface
	uids *identityuid.Store
}

// Delete implements storage.Interface. All deletions come here in the end, those of the last finalizer as well, and dry runs never.
func (r remembering) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	return r.Interface.Delete(ctx, key, out, preconditions, func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		wi, ok := obj.(*v1alpha1.WorkloadIdentity)
		if !ok {
			return nil // one that can't be read: nothing is known of it
		}
		err := r.uids.Keep(ctx, wi.UID, nameOf(wi))
		if errors.Is(err, identityuid.ErrTaken) {
			klog.FromContext(ctx).Error(err, "One of two identities with one uid is deleted", "uid", wi.UID, "namespace", wi.Namespace, "name", wi.Name)
			return nil
		}
		if err != nil {
			return unavailable.New("WorkloadIdentity %s/%s is not deleted, as its uid can't be stored: %v", wi.Namespace, wi.Name, err)
		}
		return nil
	}, cached, opts)
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
	known, err := r.uids.Known(ctx)
	if err != nil {
		return err
	}
	obj, err := r.Store.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{})
	if err != nil {
		return fmt.Errorf("list identities: %w", err)
	}
	for _, wi := range obj.(*v1alpha1.WorkloadIdentityList).Items {
		if known(wi.UID) {
			continue
		}
		err := r.uids.Keep(ctx, wi.UID, nameOf(&wi))
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
