// Package identityuid remembers for good which identity has each uid. In go a uid and the name of an identity, out comes whether it is
// that identity's. Each uid is an object in the storage, never served, changed or deleted: of two replicas that take the same uid at once, the
// storage lets one. It never reads identities.
package identityuid

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// Resource is where uids are stored. It needs no watch cache.
var Resource = v1alpha1.Resource("identityuids")

// ErrTaken means that a uid is, or was, that of another identity.
var ErrTaken = errors.New("the uid is, or was, that of another identity")

// page is how many uids are read at once.
const page = 1000

// IdentityUID is what is stored of a uid, which is its name.
type IdentityUID struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Identity is the WorkloadIdentity that has the uid, or had it.
	Identity Identity `json:"identity"`
}

// Identity names a WorkloadIdentity.
type Identity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// IdentityUIDList is a list of them.
type IdentityUIDList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IdentityUID `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (u *IdentityUID) DeepCopyObject() runtime.Object {
	return &IdentityUID{TypeMeta: u.TypeMeta, ObjectMeta: *u.ObjectMeta.DeepCopy(), Identity: u.Identity}
}

// DeepCopyObject implements runtime.Object.
func (l *IdentityUIDList) DeepCopyObject() runtime.Object {
	list := &IdentityUIDList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		list.Items = append(list.Items, *l.Items[i].DeepCopyObject().(*IdentityUID))
	}
	return list
}

// AddToScheme registers the kinds, in the version in which they are stored, and as their own internal version.
func AddToScheme(scheme *runtime.Scheme) {
	for _, version := range []string{v1alpha1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: v1alpha1.GroupName, Version: version}, &IdentityUID{}, &IdentityUIDList{})
	}
}

// Store has the uids.
type Store struct {
	// Destroy ends the storage.
	Destroy func()

	storage storage.Interface
	prefix  string
}

// New returns the store of a server.
func New(getter generic.RESTOptionsGetter) (*Store, error) {
	options, err := getter.GetRESTOptions(Resource, &IdentityUID{})
	if err != nil {
		return nil, fmt.Errorf("set up storage of uids: %w", err)
	}
	s := &Store{prefix: "/" + options.ResourcePrefix + "/"}
	s.storage, s.Destroy, err = options.Decorator(options.StorageConfig, "/"+options.ResourcePrefix, s.keyOf,
		func() runtime.Object { return &IdentityUID{} }, func() runtime.Object { return &IdentityUIDList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("set up storage of uids: %w", err)
	}
	return s, nil
}

func (s *Store) keyOf(obj runtime.Object) (string, error) {
	return s.prefix + obj.(*IdentityUID).Name, nil
}

// Take makes a uid that of an identity, for good, or returns ErrTaken. An identity may take its own again. With dryRun nothing is stored.
func (s *Store) Take(ctx context.Context, uid types.UID, of Identity, dryRun bool) error {
	key := s.prefix + string(uid)
	if !dryRun {
		taken := &IdentityUID{ObjectMeta: metav1.ObjectMeta{Name: string(uid), CreationTimestamp: metav1.Now()}, Identity: of}
		if err := s.storage.Create(ctx, key, taken, nil, 0); !storage.IsExist(err) {
			return err
		}
	}
	var found IdentityUID
	err := s.storage.Get(ctx, key, storage.GetOptions{IgnoreNotFound: dryRun}, &found)
	if err == nil && found.Name != "" && found.Identity != of {
		return ErrTaken
	}
	return err
}

// Taken returns all uids that are stored.
func (s *Store) Taken(ctx context.Context) (sets.Set[types.UID], error) {
	taken := sets.New[types.UID]()
	predicate := storage.Everything
	predicate.Limit = page
	for {
		var list IdentityUIDList
		if err := s.storage.GetList(ctx, s.prefix, storage.ListOptions{Predicate: predicate, Recursive: true}, &list); err != nil {
			return nil, fmt.Errorf("list uids: %w", err)
		}
		for i := range list.Items {
			taken.Insert(types.UID(list.Items[i].Name))
		}
		if predicate.Continue = list.Continue; predicate.Continue == "" {
			return taken, nil
		}
	}
}
