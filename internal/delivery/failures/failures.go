// Package failures is why Secrets and service accounts get no tokens: causes and their words, what is remembered of them, and when the
// next try is. In go errors of an API, out come values.
package failures

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Again is how often the same failure is reported anew.
const Again = 10 * time.Minute

// Cause is why a Secret gets no token: a word for metrics.
type Cause string

// The causes.
const (
	AnnotationInvalid Cause = "annotation_invalid" // the request of the Secret is invalid
	IdentityMissing   Cause = "identity_missing"   // the identity does not exist, or is being deleted
	NotOwn            Cause = "not_own"            // the Secret names a service account as its context, but is not the agent's
	UseDenied         Cause = "use_denied"         // the service account may not use the identity any more
	AgentForbidden    Cause = "agent_forbidden"    // the agent itself may not get this token
	AgentUnauthorized Cause = "agent_unauthorized" // the identity cluster does not accept the agent's credentials
	NoSigningKey      Cause = "no_signing_key"     // the issuer has no key that may sign for this target system now
	ServerFailed      Cause = "server_failed"      // the identity cluster failed over this request (500)
	Refused           Cause = "refused"            // the identity cluster refuses the request for another reason
	Throttled         Cause = "throttled"          // the identity cluster answers that requests for this namespace are too many (429)
	Unreachable       Cause = "unreachable"        // the identity cluster does not answer
	ReviewFailed      Cause = "review_failed"      // the workload cluster could not decide whether the account may use the identity
	TokenUnusable     Cause = "token_unusable"     // the answer is not a token of this identity
	WriteFailed       Cause = "write_failed"       // the Secret could not be written
)

// Causes returns all causes, for metrics.
func Causes() []Cause {
	return []Cause{AnnotationInvalid, IdentityMissing, NotOwn, UseDenied, AgentForbidden, AgentUnauthorized, NoSigningKey, ServerFailed, Refused, Throttled, Unreachable, ReviewFailed, TokenUnusable, WriteFailed}
}

// Failure is why a Secret gets no token now.
type Failure struct {
	Cause Cause
	// Reason is that of the Event; Message has the fault and the correction.
	Reason, Message string
}

// Of classifies an error of the identity cluster. A webhook or a policy of a namespace can give any code, so a 4xx and a 500 are
// answers to this request alone. A 404 that is not of the API is not: a server whose aggregated API is gone gives it. One
// request without an answer is not an outage yet: see outage.
func Of(err error) Cause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Unreachable
	}
	switch code := status.Status().Code; {
	case contextMissing(err):
		return Refused
	case missing(err):
		return IdentityMissing
	case apierrors.HasStatusCause(err, v1alpha1.CauseNoSigningKey):
		return NoSigningKey
	case code == http.StatusForbidden:
		return AgentForbidden
	case code == http.StatusUnauthorized:
		return AgentUnauthorized
	case code == http.StatusTooManyRequests:
		return Throttled
	case code >= 400 && code < 500 && code != http.StatusNotFound:
		return Refused
	case apierrors.IsInternalError(err):
		return ServerFailed
	default:
		return Unreachable
	}
}

// The bounds of Retry-After.
const (
	shortestRetryAfter = time.Second
	longestRetryAfter  = 5 * time.Minute
)

// RetryAfter returns how long to wait according to a 429.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(longestRetryAfter, max(shortestRetryAfter, time.Duration(seconds)*time.Second))
}

// missing reports whether the API has looked and found no such identity. A server that does not know the resource has not looked.
func missing(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// contextMissing reports whether the service account which is the context was not found: it is gone, and its Secrets will be.
func contextMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "serviceaccounts"
}

// quotaWait bounds the wait after a write that a ResourceQuota refused.
const quotaWait = 20 * time.Second

// LongestWait bounds the wait after a write that the workload cluster refused with a message; 0: as after any failure. The agent does not watch
// ResourceQuotas, so it repeats soon what one refused: pods wait for it.
func LongestWait(message string) time.Duration {
	if strings.Contains(message, "exceeded quota: ") { // as Kubernetes' admission plugin words it
		return quotaWait
	}
	return 0
}

// Forbidden is the message for an identity of which the agent gets no token.
func Forbidden(identity types.NamespacedName, err error) string {
	switch Of(err) {
	case AgentUnauthorized:
		return Unauthorized(identity.Namespace, fmt.Errorf("no token of WorkloadIdentity %s: %w", identity, err))
	case AgentForbidden:
		return fmt.Sprintf("the agent may not get tokens of WorkloadIdentity %s: %v; a cluster admin sets the namespace up with: credence enable %s; where identities are in another cluster, give the agent's user the role credence:agent:identities there",
			identity, err, identity.Namespace)
	}
	return fmt.Sprintf("the identity cluster refuses a token of WorkloadIdentity %s: %v", identity, err)
}

// Rejoin is why the identity cluster answers 401 to a cluster that has joined, and what an admin there does. Names that are not known are placeholders.
func Rejoin(cluster, namespace string) string {
	return fmt.Sprintf("this cluster left the identity cluster, or its account there was deleted, or its token ended: to join again, a cluster admin of the identity cluster runs: "+
		"credence cluster join %s --identities %s --workload-kubeconfig FILE", cmp.Or(cluster, "NAME"), cmp.Or(namespace, "NAMESPACE"))
}

// Unauthorized is the message for credentials of the agent that the identity cluster does not accept: the cause comes first, as lists cut messages.
func Unauthorized(namespace string, err error) string {
	return fmt.Sprintf("%s; credentials that are not of joining are renewed where they come from (%v)", Rejoin("", namespace), err)
}

// Denied reports whether the agent has no right, or is not known at all.
func (c Cause) Denied() bool { return c == AgentForbidden || c == AgentUnauthorized }
