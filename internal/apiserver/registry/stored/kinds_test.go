package stored_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/contextkind"
	"github.com/credence-id/credence/internal/apiserver/registry/credentialsbinding"
	keyringregistry "github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadcluster"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// storages are those of all stored kinds, in one etcd.
type storages struct {
	identities *workloadidentity.REST
	bindings   *credentialsbinding.REST
	rings      *keyringregistry.REST
	ringStatus *keyringregistry.StatusREST
	// stores are those of the others, too.
	stores map[string]*genericregistry.Store
}

func newStorages(t *testing.T) storages {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	testkit.Must(t, err)
	getter := apiservertest.NewStorage(t).RESTOptions(scheme, apiserver.GroupVersions()...)
	all := apiservertest.Rights{apiservertest.All}
	identities, err := workloadidentity.NewREST(scheme, getter, "https://issuer.example.com", all)
	testkit.Must(t, err)
	limits, err := quota.NewREST(scheme, getter)
	testkit.Must(t, err)
	bindings, err := credentialsbinding.NewREST(scheme, getter, identities, limits, nil, all)
	testkit.Must(t, err)
	rings, ringStatus, err := keyringregistry.NewREST(scheme, getter, "https://issuer.example.com", func() {})
	testkit.Must(t, err)
	clusters, err := workloadcluster.NewREST(scheme, getter, all)
	testkit.Must(t, err)
	kinds, err := contextkind.NewREST(scheme, getter, all)
	testkit.Must(t, err)
	t.Cleanup(rings.Destroy)
	s := storages{identities, bindings, rings, ringStatus, map[string]*genericregistry.Store{}}
	for _, store := range []*genericregistry.Store{identities.Store, limits.Store, bindings.Store, clusters.Store, kinds.Store} {
		t.Cleanup(store.Destroy)
		s.stores[store.DefaultQualifiedResource.Resource] = store
	}
	return s
}

// unreadable are times that RFC 3339 can express, and that no one can read in UTC.
var unreadable = []string{"9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00"}

// withTime gives an object a time. One that differs from the stored one in that alone would not be written, so the manager is another, too.
func withTime(t *testing.T, object metav1.Object, text string) {
	t.Helper()
	at := testkit.Need(time.Parse(time.RFC3339, text))(t)
	sent := metav1.NewTime(at)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: text, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.SchemeGroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`), Time: &sent},
	})
}

func wantRefused(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.managedFields[0].time") {
		t.Errorf("%v, want that metadata.managedFields[0].time is invalid", err)
	}
}

// No user can store an object that can't be read: it would keep all others of its kind from being listed.
func TestUnreadableTimesAreRefused(t *testing.T) {
	s := newStorages(t)
	ctx := apiservertest.As(t.Context(), "editor", "shop")
	for name, kind := range map[string]struct {
		rest.StandardStorage
		object runtime.Object
	}{
		"WorkloadIdentity": {s.identities, &v1alpha1.WorkloadIdentity{
			Spec: v1alpha1.WorkloadIdentitySpec{Audiences: []string{"a"}, TargetSystem: v1alpha1.TargetSystem{Type: "generic"}},
		}},
		"CredentialsBinding": {s.bindings, &v1alpha1.CredentialsBinding{
			Provider: v1alpha1.CredentialsProvider{Type: "aws"}, SecretRef: &v1alpha1.CredentialsReference{Namespace: "shop", Name: "account"},
		}},
	} {
		named := func(name string) runtime.Object {
			object := kind.object.DeepCopyObject()
			object.(metav1.Object).SetNamespace("shop")
			object.(metav1.Object).SetName(name)
			return object
		}
		update := func(name string, object runtime.Object, dryRun []string, create bool, changes ...rest.TransformFunc) error {
			_, _, err := kind.Update(ctx, name, rest.DefaultUpdatedObjectInfo(object, changes...), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, create, &metav1.UpdateOptions{DryRun: dryRun})
			return err
		}
		if _, err := kind.Create(ctx, named("there"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(name, err)
		}
		for _, text := range unreadable {
			patch := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				patched := old.DeepCopyObject()
				withTime(t, patched.(metav1.Object), text)
				return patched, nil
			}
			for way, write := range map[string]func(dryRun []string) error{
				"POST": func(dryRun []string) error {
					object := named("new")
					withTime(t, object.(metav1.Object), text)
					_, err := kind.Create(ctx, object, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
					return err
				},
				"PUT": func(dryRun []string) error {
					object := named("there")
					withTime(t, object.(metav1.Object), text)
					return update("there", object, dryRun, false)
				},
				"PATCH": func(dryRun []string) error { return update("there", nil, dryRun, false, patch) },
				"apply": func(dryRun []string) error {
					object := named("applied")
					withTime(t, object.(metav1.Object), text)
					return update("applied", object, dryRun, true)
				},
			} {
				for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
					t.Run(fmt.Sprint(name, " ", way, " ", text, dryRun), func(t *testing.T) {
						wantRefused(t, write(dryRun))
					})
				}
			}
		}
		list, err := kind.List(request.WithNamespace(t.Context(), ""), &internalversion.ListOptions{})
		if err != nil || meta.LenList(list) != 1 {
			t.Errorf("%s: listed %v, %v, want the one that was there", name, list, err)
		}
	}
}

// The storage of every kind takes times up to the end of the year 9999, and no others.
func TestAllKindsCanBeRead(t *testing.T) {
	s := newStorages(t)
	writes := map[string]func(text string) error{}
	for resource, store := range s.stores {
		writes[resource] = func(text string) error {
			object := store.NewFunc()
			object.(metav1.Object).SetName("made")
			key, err := store.KeyFunc(request.WithNamespace(t.Context(), "shop"), "made")
			if err != nil {
				return err
			}
			withTime(t, object.(metav1.Object), text)
			return store.Storage.Create(t.Context(), key, object, store.NewFunc(), 0, false)
		}
	}
	testkit.Must(t, s.rings.Ensure(t.Context(), "keys"))
	for resource, rings := range map[string]rest.Updater{"keyrings": s.rings, "keyrings/status": s.ringStatus} {
		writes[resource] = func(text string) error {
			change := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				changed := old.DeepCopyObject()
				withTime(t, changed.(metav1.Object), text)
				return changed, nil
			}
			_, _, err := rings.Update(request.WithNamespace(t.Context(), ""), "keys", rest.DefaultUpdatedObjectInfo(nil, change), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			return err
		}
	}
	for resource, write := range writes {
		t.Run(resource, func(t *testing.T) {
			for _, text := range unreadable {
				wantRefused(t, write(text))
			}
			testkit.Expect(t, write("9999-12-31T23:59:59Z"))
		})
	}
}
