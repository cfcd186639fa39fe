package rights_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
)

func TestOutageIsNotADenial(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane"}
	object := authority.Object{Kind: authority.WorkloadIdentities, Namespace: "shop", Name: "cart"}
	for right, want := range map[string]bool{"use workloadidentities shop/cart": true, "use workloadidentities shop/web": false, "use workloadidentities": false} {
		if got, err := rights.Granted(t.Context(), apiservertest.Rights{right}, jane, "use", object); got != want || err != nil {
			t.Errorf("with %q: %v, %v, want %v", right, got, err, want)
		}
	}
	got, err := rights.Granted(t.Context(), apiservertest.Away{Err: errors.New("no route to host")}, jane, "use", object)
	if got || !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), `"jane" may use workloadidentities: no route to host`) {
		t.Errorf("without an authorizer: %v, %v", got, err)
	}
	if err := rights.CannotUse("user", "jane", object); !strings.Contains(err.Error(), `user "jane" cannot use resource "workloadidentities"`) {
		t.Error(err)
	}
}
