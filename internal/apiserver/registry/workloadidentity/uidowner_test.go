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
	"github.com/credence-id/credence/test/testkit"
)

// Of identities with one uid, the one that it was made for is given tokens.
func TestUIDOfAnotherIdentity(t *testing.T) {
	_, uids := apiservertest.NewUIDs(t)
	r := &REST{uids: uids}
	identity := func(name string, uid types.UID) *v1alpha1.WorkloadIdentity {
		return &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid}}
	}
	made := testkit.Need(uids.Make(t.Context(), identityuid.Identity{Namespace: "team", Name: "own"}))(t)
	own, thief := identity("own", made), identity("thief", made)
	for range 2 { // read, and remembered
		testkit.Expect(t, r.checkUID(t.Context(), own), "its own uid")
		if err := r.checkUID(t.Context(), thief); !apierrors.IsConflict(err) {
			t.Errorf("the uid of another identity: %v", err)
		}
	}
	// A uid of which the store knows nothing is that of the first identity that uses it.
	const older = "b1946ac9-2ee7-4a8e-9d1e-0a1b2c3d4e5f"
	first, second := identity("first", older), identity("second", older)
	testkit.Expect(t, errors.Join(r.checkUID(t.Context(), first), r.checkUID(t.Context(), first)), "a uid of an earlier version")
	if err := r.checkUID(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("the uid of the first one: %v", err)
	}
}
