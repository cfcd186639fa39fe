package workloadidentity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/test/testkit"
)

// shelf is a storage of uids, and one of a single identity.
type shelf struct {
	*apiservertest.UIDs
	identity runtime.Object
}

func (s *shelf) Delete(ctx context.Context, _ string, _ runtime.Object, _ *storage.Preconditions, validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	if err := validate(ctx, s.identity); err != nil {
		return err
	}
	s.Log = append(s.Log, "deleted")
	return nil
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
			stored, uids := apiservertest.NewUIDs(t)
			if test.identity == nil {
				test.identity = &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "u"}}
			}
			if name == "of another one" {
				testkit.Must(t, uids.Keep(t.Context(), "taken", identityuid.Identity{Namespace: "ns", Name: "other"}))
			}
			stored.Broken = test.broken
			err := remembering{&shelf{stored, test.identity}, uids}.Delete(t.Context(), "key", nil, nil, func(context.Context, runtime.Object) error { return test.refused }, nil, storage.DeleteOptions{})
			code := int32(0)
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				code = status.Status().Code
			} else if err != nil {
				code = -1
			}
			if code != test.code || !slices.Equal(stored.Log, test.want) {
				t.Errorf("%v; %s", err, fmt.Sprint(stored.Log))
			}
		})
	}
}
