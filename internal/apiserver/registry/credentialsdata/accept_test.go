package credentialsdata

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

// unaccepted is the uid of a Secret that no binding gives.
const unaccepted types.UID = "unaccepted"

// Accept implements Bindings.
func (s *scene) Accept(_ context.Context, _ *v1alpha1.CredentialsBinding, secret types.UID) error {
	if secret == unaccepted {
		return apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("the writer may not get it"))
	}
	return nil
}

// A Secret that consents is given only if the user who wrote the reference may get it.
func TestSecretThatIsNotAccepted(t *testing.T) {
	s := newScene()
	testkit.Must(t, testkit.Err(s.create(t)))
	s.secret.UID = unaccepted
	if data, err := s.create(t); !apierrors.IsForbidden(err) || data != nil {
		t.Errorf("%v, %v, want 403", data, err)
	}
}
