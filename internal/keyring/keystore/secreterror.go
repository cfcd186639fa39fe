package keystore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failed describes the failure without the messages of the API and of its client: an answer that is not a Secret, an admission
// webhook or a policy may repeat the content of the Secret.
func (s *Secret) failed(ctx context.Context, operation string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", operation, s, context.Cause(ctx))
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := int(status.Status().Code)
		return fmt.Errorf("%s %s: the API answered %d (%s)%s", operation, s, code, http.StatusText(code), remedies[code])
	}
	if transport, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s %s: %w", operation, s, transport.Err)
	}
	return fmt.Errorf("%s %s: the answer of the API can not be read (%T)", operation, s, err)
}

// remedies are what to do about an answer, by its status.
var remedies = map[int]string{
	http.StatusUnauthorized:        ": check the credentials of this process",
	http.StatusForbidden:           ": allow this process to get, watch and update it; the key controller makes it where it is missing. If that is allowed, admission refuses it",
	http.StatusNotFound:            ": check that the namespace exists and that this is the API of a cluster",
	http.StatusUnprocessableEntity: ": check the name, the namespace and the admission policies",
}

// isMissing reports whether the API itself has no such Secret. A 404 of something else on the way does not count.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
