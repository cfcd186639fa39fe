package quotas

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
)

// Resource is where ledgers are stored. It needs no watch cache.
var Resource = v1alpha1.Resource("quotaledgers")

// page is how many ledgers are read at once.
const page = 100

// Ledger is what is stored of the objects that count for a Quota: of all, or of those of one namespace. It is never served. Its name and
// namespace are those of the Quota.
type Ledger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Quota is the uid of the Quota: one that is made anew begins anew.
	Quota types.UID `json:"quota"`
	// Project is the namespace whose objects count; empty if all do.
	Project string `json:"project,omitempty"`
	// Entries are the objects, by RESOURCE.GROUP/NAMESPACE/NAME. An entry is never changed, only replaced.
	Entries map[string]entry `json:"entries,omitempty"`
}

// LedgerList is a list of them.
type LedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ledger `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *Ledger) DeepCopyObject() runtime.Object {
	return &Ledger{TypeMeta: l.TypeMeta, ObjectMeta: *l.ObjectMeta.DeepCopy(), Quota: l.Quota, Project: l.Project, Entries: maps.Clone(l.Entries)}
}

// DeepCopyObject implements runtime.Object.
func (l *LedgerList) DeepCopyObject() runtime.Object {
	list := &LedgerList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		list.Items = append(list.Items, *l.Items[i].DeepCopyObject().(*Ledger))
	}
	return list
}

// AddToScheme registers the kinds, in the version in which they are stored, and as their own internal version.
func AddToScheme(scheme *runtime.Scheme) {
	for _, version := range []string{v1alpha1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		group := schema.GroupVersion{Group: v1alpha1.GroupName, Version: version}
		scheme.AddKnownTypeWithName(group.WithKind("QuotaLedger"), &Ledger{})
		scheme.AddKnownTypeWithName(group.WithKind("QuotaLedgerList"), &LedgerList{})
	}
}

// store has the ledgers.
type store struct {
	storage storage.Interface
	destroy func()
	prefix  string
}

func newStore(getter generic.RESTOptionsGetter) (*store, error) {
	options, err := getter.GetRESTOptions(Resource, &Ledger{})
	if err != nil {
		return nil, fmt.Errorf("set up storage of ledgers: %w", err)
	}
	config := *options.StorageConfig
	config.Codec = newer.Codec(config.Codec)
	s := &store{prefix: "/" + options.ResourcePrefix + "/"}
	s.storage, s.destroy, err = options.Decorator(&config, "/"+options.ResourcePrefix, func(obj runtime.Object) (string, error) { return s.key(obj.(*Ledger)), nil },
		func() runtime.Object { return &Ledger{} }, func() runtime.Object { return &LedgerList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("set up storage of ledgers: %w", err)
	}
	s.storage = newer.Storage(s.storage)
	return s, nil
}

func (s *store) key(of *Ledger) string {
	key := s.prefix + of.Namespace + "/" + of.Name
	if of.Project != "" {
		key += "/" + of.Project
	}
	return key
}

// update replaces the entries of a ledger, by compare-and-swap: change is called again where another write came first. A ledger that is not
// there, or of a former Quota of the name, has no entries. Its error is returned, and nothing is written.
func (s *store) update(ctx context.Context, of *Ledger, change func(entries map[string]entry) (map[string]entry, error)) error {
	return s.storage.GuaranteedUpdate(ctx, s.key(of), &Ledger{}, true, nil, func(stored runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		next := stored.DeepCopyObject().(*Ledger)
		if next.Quota != of.Quota {
			next.Quota, next.Entries = of.Quota, nil
		}
		next.Namespace, next.Name, next.Project = of.Namespace, of.Name, of.Project
		var err error
		next.Entries, err = change(next.Entries)
		return next, nil, err
	}, nil)
}

// read returns the entries of a ledger as they are now.
func (s *store) read(ctx context.Context, of *Ledger) (map[string]entry, error) {
	var found Ledger
	if err := s.storage.Get(ctx, s.key(of), storage.GetOptions{IgnoreNotFound: true}, &found); err != nil {
		return nil, err
	}
	if found.Quota != of.Quota {
		return nil, nil
	}
	return found.Entries, nil
}

// all returns all ledgers.
func (s *store) all(ctx context.Context) ([]Ledger, error) {
	var all []Ledger
	predicate := storage.Everything
	predicate.Limit = page
	for {
		var list LedgerList
		if err := s.storage.GetList(ctx, s.prefix, storage.ListOptions{Predicate: predicate, Recursive: true}, &list); err != nil {
			return nil, fmt.Errorf("list ledgers: %w", err)
		}
		all = append(all, list.Items...)
		if predicate.Continue = list.Continue; predicate.Continue == "" {
			return all, nil
		}
	}
}

// remove deletes a ledger that has not changed since it was read.
func (s *store) remove(ctx context.Context, read *Ledger) error {
	err := s.storage.Delete(ctx, s.key(read), &Ledger{}, &storage.Preconditions{ResourceVersion: &read.ResourceVersion}, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if storage.IsNotFound(err) || storage.IsInvalidObj(err) {
		return nil
	}
	return err
}
