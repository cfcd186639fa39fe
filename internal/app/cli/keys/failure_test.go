package keys

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/app/cli/command"
)

// A ring that is older than what is known of it changes nothing, and waits for an operator's decision.
func TestCommandsOnAnOlderRing(t *testing.T) {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: "the stored ring of keys is older", Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "RingSuperseded", Message: "the stored ring of keys is older"}},
	}}}
	revocation := &revocation{command: func(name string) string { return "credence keys " + name }}
	failed := revocation.refusal(apiFailure("credence", "revoke key x", err))
	const hint = "nothing was changed: put the newest ring back, or see what goes on without it: credence keys initialize --dry-run --reason TEXT"
	if failed.Code != command.ExitRefused || failed.Line != "Error from server (Conflict): the stored ring of keys is older" || failed.Hint != hint {
		t.Errorf("%+v", failed)
	}
	err.ErrStatus.Details = nil
	if failed := apiFailure("credence", "revoke key x", err); failed.Hint != "" {
		t.Errorf("another conflict has the hint %q", failed.Hint)
	}
}
