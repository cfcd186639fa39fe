package workloadidentity

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
)

// Of identities with one uid, the one that it was made for is given tokens.
func TestUIDOfAnotherIdentity(t *testing.T) {
	_, uids := apiservertest.NewUIDs(t)
	r := &REST{uids: uids}
	identity := func(name string, uid types.UID) *v1alpha1.WorkloadIdentity {
		return &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid}}
	}
	made, err := uids.Make(t.Context(), identityuid.Identity{Namespace: "team", Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	own, thief := identity("own", made), identity("thief", made)
	for range 2 { // read, and remembered
		if err := r.checkUID(t.Context(), own); err != nil {
			t.Errorf("its own uid: %v", err)
		}
		if err := r.checkUID(t.Context(), thief); !apierrors.IsConflict(err) {
			t.Errorf("the uid of another identity: %v", err)
		}
	}
	// A uid of which the store knows nothing is that of the first identity that uses it.
	const older = "b1946ac9-2ee7-4a8e-9d1e-0a1b2c3d4e5f"
	first, second := identity("first", older), identity("second", older)
	if err := errors.Join(r.checkUID(t.Context(), first), r.checkUID(t.Context(), first)); err != nil {
		t.Errorf("a uid of an earlier version: %v", err)
	}
	if err := r.checkUID(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("the uid of the first one: %v", err)
	}
}
