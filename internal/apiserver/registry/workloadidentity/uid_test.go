package workloadidentity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
)

// shelf is a storage of uids, and one of a single identity.
type shelf struct {
	storage.Interface
	uids     map[string]*identityuid.IdentityUID
	identity runtime.Object
	broken   error // of writing uids
	log      []string
}

func (s *shelf) Create(_ context.Context, key string, obj, _ runtime.Object, _ uint64) error {
	if s.broken != nil {
		return s.broken
	}
	if s.uids[key] != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	s.uids[key] = obj.(*identityuid.IdentityUID)
	s.log = append(s.log, "stored "+obj.(*identityuid.IdentityUID).Identity.Name)
	return nil
}

func (s *shelf) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	if found := s.uids[key]; found != nil {
		*out.(*identityuid.IdentityUID) = *found
	}
	return nil
}

func (s *shelf) Delete(ctx context.Context, _ string, _ runtime.Object, _ *storage.Preconditions, validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	if err := validate(ctx, s.identity); err != nil {
		return err
	}
	s.log = append(s.log, "deleted")
	return nil
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s *shelf) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{ResourcePrefix: "uids", Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		return s, func() {}, nil
	}}, nil
}

func newShelf(t *testing.T) (*shelf, *identityuid.Store) {
	t.Helper()
	s := &shelf{uids: map[string]*identityuid.IdentityUID{}}
	uids, err := identityuid.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, uids
}

// Many uids are one write, all differ, and none of them can be given to another identity than it was made for.
func TestUIDsAreMadeInBlocks(t *testing.T) {
	s, uids := newShelf(t)
	own, other := identityuid.Identity{Namespace: "ns", Name: "own"}, identityuid.Identity{Namespace: "ns", Name: "other"}
	made := map[types.UID]bool{}
	var last types.UID
	for range 300 {
		uid, err := uids.Make(t.Context(), own)
		if err != nil || made[uid] || !uuids.MatchString(string(uid)) || uid[14] != '4' {
			t.Fatalf("uid %q, made before: %t, %v", uid, made[uid], err)
		}
		made[uid], last = true, uid
	}
	if len(s.log) != 2 {
		t.Errorf("%d writes for 300 uids, want 2", len(s.log))
	}
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	for changed := range len(last) {
		altered := []byte(last)
		if altered[changed] == '-' || changed < len("12b580fe-1f74-") {
			continue
		}
		altered[changed] ^= 1
		want("one that was not made", uids.Take(t.Context(), types.UID(altered), own, true), identityuid.ErrTaken)
	}
	want("another one", uids.Take(t.Context(), last, other, true), identityuid.ErrTaken)
	want("another namespace", uids.Take(t.Context(), last, identityuid.Identity{Namespace: "other", Name: "own"}, true), identityuid.ErrTaken)
	want("a short one", uids.Take(t.Context(), last[:20], own, true), identityuid.ErrTaken)
	want("its own, dry run", uids.Take(t.Context(), last, own, true), nil)
	if len(s.log) != 2 {
		t.Error("a dry run has stored a uid")
	}
	for _, block := range s.uids {
		block.Key = nil
	}
	forged := hmac.New(sha256.New, nil)
	_, _ = forged.Write([]byte(string(last[:28]) + "/ns/other"))
	want("of a block without a key", uids.Take(t.Context(), last[:28]+types.UID(hex.EncodeToString(forged.Sum(nil))[:8]), other, true), identityuid.ErrTaken)
	want("deleted", uids.Keep(t.Context(), last, own), nil)
	want("deleted again", uids.Keep(t.Context(), last, own), nil)
	want("the deletion of another one", uids.Keep(t.Context(), last, other), identityuid.ErrTaken)
	for _, dryRun := range []bool{true, false} {
		want("another one", uids.Take(t.Context(), last, other, dryRun), identityuid.ErrTaken)
		want("its own again", uids.Take(t.Context(), last, own, dryRun), nil)
	}
	const foreign = "12b580fe-1f74-4195-852b-e1a74b03496a"
	want("chosen, dry run", uids.Take(t.Context(), foreign, own, true), nil)
	want("chosen", uids.Take(t.Context(), foreign, other, false), nil)
	want("chosen twice", uids.Take(t.Context(), foreign, own, false), identityuid.ErrTaken)
	s.broken = errors.New("disk full")
	want("no more", uids.Take(t.Context(), "22b580fe-1f74-4195-852b-e1a74b03496a", own, false), s.broken)
	for range 512 - 300 {
		if _, err := uids.Make(t.Context(), own); err != nil {
			t.Fatalf("of the block that is stored: %v", err)
		}
	}
	if uid, err := uids.Make(t.Context(), own); !errors.Is(err, s.broken) {
		t.Errorf("uid %q, %v of a block that can't be stored", uid, err)
	}
}

func TestUIDsAreStoredBeforeADeletion(t *testing.T) {
	for name, test := range map[string]struct {
		identity runtime.Object
		refused  error
		broken   error
		code     int32
		want     []string
	}{
		"first":              {want: []string{"stored own", "deleted"}},
		"refused":            {refused: errors.New("held"), code: -1},
		"can't be stored":    {broken: errors.New("disk full"), code: http.StatusServiceUnavailable},
		"of another one":     {identity: &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "taken"}}, want: []string{"stored other", "deleted"}},
		"one that is broken": {identity: (*v1alpha1.WorkloadIdentityList)(nil), want: []string{"deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, uids := newShelf(t)
			if test.identity == nil {
				test.identity = &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "u"}}
			}
			if name == "of another one" {
				if err := uids.Keep(t.Context(), "taken", identityuid.Identity{Namespace: "ns", Name: "other"}); err != nil {
					t.Fatal(err)
				}
			}
			s.identity, s.broken = test.identity, test.broken
			err := remembering{s, uids}.Delete(t.Context(), "key", nil, nil, func(context.Context, runtime.Object) error { return test.refused }, nil, storage.DeleteOptions{})
			code := int32(0)
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				code = status.Status().Code
			} else if err != nil {
				code = -1
			}
			if code != test.code || !slices.Equal(s.log, test.want) {
				t.Errorf("%v; %s", err, fmt.Sprint(s.log))
			}
		})
	}
}
