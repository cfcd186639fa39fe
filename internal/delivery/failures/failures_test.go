package failures

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Credentials that have expired are no lack of rights.
func TestForbidden(t *testing.T) {
	identity := types.NamespacedName{Namespace: "fruit", Name: "banana"}
	for want, err := range map[string]error{
		"this cluster left the identity cluster, or its account there was deleted, or its token ended: to join again, a cluster admin of the identity cluster runs: credence cluster join NAME --identities fruit --workload-kubeconfig FILE": apierrors.NewUnauthorized("Unauthorized"),
		"a cluster admin sets the namespace up with: credence enable fruit;": apierrors.NewForbidden(schema.GroupResource{}, "banana", errors.New("no")),
		"the identity cluster refuses a token":                               apierrors.NewBadRequest("no"),
	} {
		if got := Forbidden(identity, err); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %q", err, got, want)
		}
	}
	if cause := Of(apierrors.NewUnauthorized("Unauthorized")); cause != AgentUnauthorized || !cause.Denied() {
		t.Errorf("the cause of 401 is %s", cause)
	}
}

// Only an answer of the API about the identity is one: a server that does not know the resource has not looked.
func TestCauses(t *testing.T) {
	resource := schema.GroupResource{Group: "g", Resource: "workloadidentities"}
	noKey := apierrors.NewServiceUnavailable("no key")
	noKey.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}}}
	for name, test := range map[string]struct {
		err  error
		want Cause
	}{
		"not found":            {apierrors.NewNotFound(resource, "banana"), IdentityMissing},
		"unknown API":          {apierrors.NewGenericServerResponse(404, "GET", resource, "banana", "404 page not found", 0, true), Unreachable},
		"no service account":   {apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "web"), Refused},
		"no signing key":       {noKey, NoSigningKey},
		"forbidden":            {apierrors.NewForbidden(resource, "banana", nil), AgentForbidden},
		"too many requests":    {apierrors.NewTooManyRequests("later", 7), Throttled},
		"conflict":             {apierrors.NewConflict(resource, "banana", nil), Refused},
		"internal error":       {apierrors.NewInternalError(errors.New("x")), ServerFailed},
		"service unavailable":  {apierrors.NewServiceUnavailable("starting"), Unreachable},
		"a connection refused": {errors.New("connection refused"), Unreachable},
	} {
		if got := Of(test.err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	for seconds, want := range map[int]time.Duration{0: time.Second, 7: 7 * time.Second, 86400: 5 * time.Minute} {
		if got := RetryAfter(apierrors.NewTooManyRequests("later", seconds)); got != want {
			t.Errorf("retried after %s, want %s", got, want)
		}
	}
}
