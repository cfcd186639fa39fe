package connection_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
)

// An API that is not installed is named as that of what was requested.
func TestAPIThatIsNotInstalled(t *testing.T) {
	for resource, api := range map[string]string{"workloadidentities": "authentication.gardener.cloud/v1alpha1", "serviceaccountprofiles": "accounts.credence.dev/v1alpha1"} {
		answer := apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{Resource: resource}, "cart", "404 page not found", 0, true)
		failed, ok := errors.AsType[*command.Failure](connection.Request{Namespace: "shop"}.Failure("read", answer))
		if !ok || !strings.HasPrefix(failed.Hint, "Credence's API ("+api+") is not installed") {
			t.Errorf("%s: %+v", resource, failed)
		}
	}
}
