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
		"lets it join again by credence cluster join":              apierrors.NewUnauthorized("Unauthorized"),
		"give the agent's user the role credence:agent:identities": apierrors.NewForbidden(schema.GroupResource{}, "banana", errors.New("no")),
		"the identity cluster refuses a token":                     apierrors.NewBadRequest("no"),
	} {
		if got := Forbidden(identity, err); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %q", err, got, want)
		}
	}
}
