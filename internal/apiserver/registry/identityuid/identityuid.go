// Package identityuid makes the uids of identities, and remembers for good which identity has had each. In go a uid and the name of an
// identity, out comes whether it can be that identity's. It remembers them as objects in the storage, never served, changed or deleted: of two
// replicas that take the same uid at once, the storage lets one. It never reads identities.
//
// A uid that a server makes begins with those of a block, whose object is stored before any of them is made: so it is known for one that was made here
// without an object of its own, until its identity is deleted. It ends with a proof of the name that it was made for, by the key of the block: so no other identity is
// given it, whatever else is stored.
package identityuid

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// Resource is where uids are stored. It needs no watch cache.
var Resource = v1alpha1.Resource("identityuids")

// ErrTaken means that a uid is, or was, that of another identity.
var ErrTaken = errors.New("the uid is, or was, that of another identity")

const (
	// page is how many uids are read at once.
	page = 1000
	// blockSize is how many uids are made of a block.
	blockSize = 256
	// blockName is how much of a uid is the name of its block: 48 random bits.
	blockName = len("12b580fe-1f74")
	// proven is how much of a uid is before its proof: 42 random bits after those of the block. 32 are left to the proof.
	proven = len("12b580fe-1f74-4195-852b-e1a7")
	// proofSize is how much of a uid is its proof.
	proofSize = len("4b03496a")
)

// IdentityUID is what is stored of a uid, which is its name, or of a block, which has no identity.
type IdentityUID struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Identity is the WorkloadIdentity that has the uid, or had it.
	Identity Identity `json:"identity"`
	// Key is that of a block, secret. Blocks of earlier versions have none.
	Key []byte `json:"key,omitempty"`
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
	return &IdentityUID{TypeMeta: u.TypeMeta, ObjectMeta: *u.ObjectMeta.DeepCopy(), Identity: u.Identity, Key: bytes.Clone(u.Key)}
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

	mu    sync.Mutex
	block *IdentityUID // of the uids that are made
	left  int          // how many more are made of it
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

// Make returns a uid for a new identity, which no identity has or had, and which no other one can be given.
func (s *Store) Make(ctx context.Context, of Identity) (types.UID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.left == 0 {
		block := &IdentityUID{ObjectMeta: metav1.ObjectMeta{Name: string(uuid.NewUUID())[:blockName]}, Key: []byte(rand.Text())}
		if err := s.create(ctx, block); storage.IsExist(err) {
			continue
		} else if err != nil {
			return "", err
		}
		s.block, s.left = block, blockSize
	}
	s.left--
	return s.block.uid(s.block.Name+string(uuid.NewUUID())[blockName:proven], of), nil
}

// uid completes a uid of the block, for an identity, with its proof.
func (u *IdentityUID) uid(beginning string, of Identity) types.UID {
	mac := hmac.New(sha256.New, u.Key)
	_, _ = mac.Write([]byte(beginning + "/" + of.Namespace + "/" + of.Name)) // it never fails
	return types.UID(beginning + hex.EncodeToString(mac.Sum(nil))[:proofSize])
}

func (s *Store) create(ctx context.Context, uid *IdentityUID) error {
	uid.CreationTimestamp = metav1.Now()
	return s.storage.Create(ctx, s.prefix+uid.Name, uid, nil, 0)
}

// Take makes a uid that a user has chosen that of an identity, for good, or returns ErrTaken. An identity may take its own again: one that was
// deleted, or that a storage has lost which is put back from before it. With dryRun nothing is stored.
func (s *Store) Take(ctx context.Context, uid types.UID, of Identity, dryRun bool) error {
	found, err := s.find(ctx, string(uid))
	switch {
	case err != nil:
		return err
	case found != nil:
		return found.check(of)
	}
	if block, err := s.find(ctx, blockOf(uid)); err != nil {
		return err
	} else if block != nil && !block.madeFor(uid, of) {
		return ErrTaken
	}
	if dryRun {
		return nil
	}
	return s.Keep(ctx, uid, of)
}

// Keep stores for good that a uid is that of an identity, or returns ErrTaken if it is known to be that of another one.
func (s *Store) Keep(ctx context.Context, uid types.UID, of Identity) error {
	if err := s.create(ctx, &IdentityUID{ObjectMeta: metav1.ObjectMeta{Name: string(uid)}, Identity: of}); !storage.IsExist(err) {
		return err
	}
	found, err := s.find(ctx, string(uid))
	if err != nil || found == nil {
		return cmp.Or(err, ErrTaken)
	}
	return found.check(of)
}

// find returns what is stored of a uid, or of a block; nil if nothing is.
func (s *Store) find(ctx context.Context, name string) (*IdentityUID, error) {
	var found IdentityUID
	if err := s.storage.Get(ctx, s.prefix+name, storage.GetOptions{IgnoreNotFound: true}, &found); err != nil || found.Name == "" {
		return nil, err
	}
	return &found, nil
}

func (u *IdentityUID) check(of Identity) error {
	if u.Identity != of {
		return ErrTaken
	}
	return nil
}

// madeFor reports whether a uid of the block was made for an identity.
func (u *IdentityUID) madeFor(uid types.UID, of Identity) bool {
	return len(u.Key) > 0 && uid == u.uid(string(uid)[:min(proven, len(uid))], of)
}

// blockOf is the name of the block that a uid is of, if a server has made it.
func blockOf(uid types.UID) string { return string(uid)[:min(blockName, len(uid))] }

// Known returns a function that reports whether a uid, or its block, is stored.
func (s *Store) Known(ctx context.Context) (func(types.UID) bool, error) {
	known := sets.New[string]()
	predicate := storage.Everything
	predicate.Limit = page
	for {
		var list IdentityUIDList
		if err := s.storage.GetList(ctx, s.prefix, storage.ListOptions{Predicate: predicate, Recursive: true}, &list); err != nil {
			return nil, fmt.Errorf("list uids: %w", err)
		}
		for i := range list.Items {
			known.Insert(list.Items[i].Name)
		}
		if predicate.Continue = list.Continue; predicate.Continue == "" {
			return func(uid types.UID) bool { return known.HasAny(string(uid), blockOf(uid)) }, nil
		}
	}
}
