package connection_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
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

// A server that has not read something yet lacks no key.
func TestUnavailable(t *testing.T) {
	unavailable := func(details *metav1.StatusDetails) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 503, Reason: metav1.StatusReasonServiceUnavailable, Details: details}}
	}
	for want, err := range map[string]error{
		"a user with ClusterRole credence:keyrings:viewer sees from when a key may sign: credence keys list; a cluster admin sees whether": unavailable(&metav1.StatusDetails{
			RetryAfterSeconds: 10, Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}},
		}),
		"try again in 5 seconds; if it stays so, a cluster admin sees why: credence doctor": unavailable(&metav1.StatusDetails{RetryAfterSeconds: 5}),
		"a cluster admin sees whether Credence's API is available: kubectl get apiservice":  unavailable(nil),
	} {
		failed, ok := errors.AsType[*command.Failure](connection.Request{Program: "credence"}.Failure("read", err))
		if !ok || !strings.HasPrefix(failed.Hint, want) || failed.Code != command.ExitOutage {
			t.Errorf("%+v, want %q", failed, want)
		}
	}
}
