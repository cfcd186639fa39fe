package delivery

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Cause is why a Secret gets no token: a word for metrics.
type Cause string

// The causes.
const (
	AnnotationInvalid Cause = "annotation_invalid" // what the Secret asks for can't be understood
	IdentityMissing   Cause = "identity_missing"   // the identity does not exist, or is being deleted
	NotOwn            Cause = "not_own"            // the Secret names a service account as its context, but is not the agent's
	UseDenied         Cause = "use_denied"         // the service account may not use the identity any more
	AgentForbidden    Cause = "agent_forbidden"    // the agent itself may not get this token
	NoSigningKey      Cause = "no_signing_key"     // the issuer has no key that may sign for this target system now
	Refused           Cause = "refused"            // the identity cluster refuses the request for another reason
	Unreachable       Cause = "unreachable"        // the identity cluster can't answer
	ReviewFailed      Cause = "review_failed"      // the workload cluster could not say whether the account may use the identity
	TokenUnusable     Cause = "token_unusable"     // the answer is no token of this identity
	WriteFailed       Cause = "write_failed"       // the Secret could not be written
)

// Causes returns all causes, for metrics.
func Causes() []Cause {
	return []Cause{AnnotationInvalid, IdentityMissing, NotOwn, UseDenied, AgentForbidden, NoSigningKey, Refused, Unreachable, ReviewFailed, TokenUnusable, WriteFailed}
}

// failure is why a Secret gets no token now.
type failure struct {
	cause Cause
	// reason is that of the Event; message says what is wrong and what to do.
	reason, message string
}

// cause classifies an error of the identity cluster. What nobody there has decided is an outage.
func cause(err error) Cause {
	switch {
	case contextMissing(err):
		return Refused
	case missing(err):
		return IdentityMissing
	case apierrors.HasStatusCause(err, v1alpha1.CauseNoSigningKey):
		return NoSigningKey
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return AgentForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsConflict(err), apierrors.IsInternalError(err):
		return Refused
	default:
		return Unreachable
	}
}

// missing says whether the API has looked and found no such identity. A server that does not know the resource has not looked.
func missing(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeUnexpectedServerResponse {
			return false
		}
	}
	return true
}

// contextMissing says that the service account which is the context was not found: it is gone, and its Secrets will be.
func contextMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "serviceaccounts"
}
