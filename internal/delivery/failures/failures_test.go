package failures

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Credentials that have expired are no lack of rights.
func TestForbidden(t *testing.T) {
	identity := types.NamespacedName{Namespace: "fruit", Name: "banana"}
	for want, err := range map[string]error{
		"this cluster left the identity cluster, or its account there was deleted, or its token ended: to join again, a cluster admin of the identity cluster runs: credence cluster join NAME --identities fruit --workload-kubeconfig FILE": apierrors.NewUnauthorized("Unauthorized"),
		"give the agent's user the role credence:agent:identities": apierrors.NewForbidden(schema.GroupResource{}, "banana", errors.New("no")),
		"the identity cluster refuses a token":                     apierrors.NewBadRequest("no"),
	} {
		if got := Forbidden(identity, err); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %q", err, got, want)
		}
	}
	if cause := Of(apierrors.NewUnauthorized("Unauthorized")); cause != AgentUnauthorized || !cause.Denied() {
		t.Errorf("the cause of 401 is %s", cause)
	}
}
