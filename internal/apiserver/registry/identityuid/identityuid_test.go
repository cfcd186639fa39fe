package identityuid_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// uuids are UUIDs of version 4.
var uuids = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// Many uids are one write, all differ, and none of them can be given to another identity than it was made for.
func TestUIDsAreMadeInBlocks(t *testing.T) {
	s, uids := apiservertest.NewUIDs(t)
	own, other := identityuid.Identity{Namespace: "ns", Name: "own"}, identityuid.Identity{Namespace: "ns", Name: "other"}
	made := map[types.UID]bool{}
	var last types.UID
	for range 300 {
		uid, err := uids.Make(t.Context(), own)
		if err != nil || made[uid] || !uuids.MatchString(string(uid)) {
			t.Fatalf("uid %q, made before: %t, %v", uid, made[uid], err)
		}
		made[uid], last = true, uid
	}
	if len(s.Log) != 2 {
		t.Errorf("%d writes for 300 uids, want 2", len(s.Log))
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
	if len(s.Log) != 2 {
		t.Error("a dry run has stored a uid")
	}
	for _, block := range s.Stored {
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
	s.Broken = errors.New("disk full")
	want("no more", uids.Take(t.Context(), "22b580fe-1f74-4195-852b-e1a74b03496a", own, false), s.Broken)
	for range 512 - 300 {
		testkit.Must(t, testkit.Err(uids.Make(t.Context(), own)), "of the block that is stored")
	}
	if uid, err := uids.Make(t.Context(), own); !errors.Is(err, s.Broken) {
		t.Errorf("uid %q, %v of a block that can't be stored", uid, err)
	}
}

// Another server on the same etcd knows what is stored: uids, and the blocks of uids that were made.
func TestStoredUIDsAreKnownToAnotherServer(t *testing.T) {
	scheme := runtime.NewScheme()
	identityuid.AddToScheme(scheme)
	metav1.AddToGroupVersion(scheme, v1alpha1.SchemeGroupVersion)
	storage := apiservertest.NewStorage(t)
	start := func() *identityuid.Store {
		t.Helper()
		uids := testkit.Need(identityuid.New(storage.RESTOptions(scheme, v1alpha1.SchemeGroupVersion)))(t)
		t.Cleanup(uids.Destroy)
		return uids
	}
	first := start()
	own := identityuid.Identity{Namespace: "ns", Name: "own"}
	made := testkit.Need(first.Make(t.Context(), own))(t)
	const taken = "12b580fe-1f74-4195-852b-e1a74b03496a"
	testkit.Must(t, first.Take(t.Context(), taken, own, false))
	// More than one page.
	for i := range 1000 {
		testkit.Must(t, first.Keep(t.Context(), types.UID(fmt.Sprintf("uid-%d", i)), own))
	}
	known := testkit.Need(start().Known(t.Context()))(t)
	for uid, want := range map[types.UID]bool{made: true, taken: true, "uid-0": true, "uid-999": true, "22b580fe-1f74-4195-852b-e1a74b03496a": false} {
		if known(uid) != want {
			t.Errorf("uid %s is known: %v, want %v", uid, !want, want)
		}
	}
	if err := start().Take(t.Context(), made, identityuid.Identity{Namespace: "ns", Name: "other"}, false); !errors.Is(err, identityuid.ErrTaken) {
		t.Errorf("a uid that another server has made is given to another identity: %v", err)
	}
}
