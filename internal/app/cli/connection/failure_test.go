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

// Only the hint for a command with -A suggests to leave it out.
func TestRightsAtTheirScope(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(`User "jane" cannot list resource "secrets" in API group ""`))
	for want, request := range map[string]connection.Request{
		`in namespace "shop": ask for a Role`:                               {Namespace: "shop"},
		"in all namespaces: look at one namespace by -n in place of -A, or": {All: true},
		"at the cluster scope: ask for a ClusterRole":                       {},
	} {
		failed, ok := errors.AsType[*command.Failure](request.Failure("read", refused))
		if !ok || !strings.Contains(failed.Hint, want) {
			t.Errorf("%+v: %+v, want %q", request, failed, want)
		}
	}
}
