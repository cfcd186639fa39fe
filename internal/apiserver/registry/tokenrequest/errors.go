package tokenrequest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/issuer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryAfterSeconds is when a caller may retry while no key may sign.
const retryAfterSeconds = 10

func issueError(err error) error {
	if errors.Is(err, issuer.ErrNoSigningKey) {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    http.StatusServiceUnavailable,
			Reason:  metav1.StatusReasonServiceUnavailable,
			Message: "no signing key may be used now: " + err.Error(),
			Details: &metav1.StatusDetails{
				RetryAfterSeconds: retryAfterSeconds,
				// So that a caller can distinguish it from a server that does not answer.
				Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey, Message: err.Error()}},
			},
		}}
	}
	return apierrors.NewInternalError(fmt.Errorf("issue token: %w", err))
}
