package selftokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/boundtoken"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
)

// token requests a token of an identity for the pod of a service-account token, which came from the address host:port. Its errors are those of an API.
func (h *Handler) token(ctx context.Context, name types.NamespacedName, podToken identity.Token, address string) (v1alpha1.TokenRequestStatus, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return v1alpha1.TokenRequestStatus{}, fmt.Errorf("read the address of a request: %w", err)
	}
	caller, err := h.caller(ctx, name, podToken, host)
	if err != nil {
		return v1alpha1.TokenRequestStatus{}, err
	}
	log := h.Log.With("identity", name.String(), "account", caller.String(), "pod", caller.Pod.Name, "podUID", caller.Pod.UID, "node", caller.Node.Name, "nodeUID", caller.Node.UID)
	status, id, err := h.tokenOf(ctx, name, caller)
	if err != nil {
		log.InfoContext(ctx, "pod got no token", "error", err)
		return v1alpha1.TokenRequestStatus{}, err
	}
	log.InfoContext(ctx, "pod got a token", "jti", id, "expires", status.ExpirationTimestamp.UTC())
	return status, nil
}

// begin takes a place for a request. It returns an error (429) if no place is left; otherwise the caller must call done at the end.
func (h *Handler) begin(room *room, whose string) (done func(), err error) {
	left, over := room.begin(whose)
	if over != "" {
		h.Recorder.turnedAway.WithLabelValues(string(over)).Inc()
		return nil, apierrors.NewTooManyRequests("as many requests for tokens of pods are worked on as may be at a time", 1)
	}
	h.Recorder.inFlight.Inc()
	return func() {
		h.Recorder.inFlight.Dec()
		left()
	}, nil
}

// caller has the workload cluster verify the token of a pod: one for another audience, such as the API server itself, is not accepted. The place
// of a request whose caller is not known yet is free again after it.
func (h *Handler) caller(ctx context.Context, name types.NamespacedName, token identity.Token, host string) (boundtoken.Caller, error) {
	done, err := h.begin(h.unknown, host)
	if err != nil {
		return boundtoken.Caller{}, err
	}
	defer done()
	review, err := h.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Reveal(), Audiences: []string{v1alpha1.AudienceAgent}},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return boundtoken.Caller{}, unanswered("the agent may not have the workload cluster review service-account tokens: a cluster admin installs deploy/options/agent-pods.yaml")
	case err != nil:
		// The error of a client could have the request in it.
		return boundtoken.Caller{}, unanswered("the workload cluster does not review the pod's service-account token: %s", cmp.Or(string(apierrors.ReasonForError(err)), "no answer"))
	case !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, v1alpha1.AudienceAgent):
		return boundtoken.Caller{}, apierrors.NewUnauthorized("the service-account token is not valid for the audience " + v1alpha1.AudienceAgent)
	}
	u := review.Status.User
	caller, refusal := boundtoken.Read(u.Username, types.UID(u.UID), u.Extra)
	switch {
	case refusal != "":
		return boundtoken.Caller{}, forbidden(name, refusal)
	case caller.UID == "":
		return boundtoken.Caller{}, forbidden(name, fmt.Sprintf("the workload cluster states no uid of service account %s", caller))
	}
	return caller, nil
}

// tokenOf requests a token for a pod that may have it, and returns its ID. Decisions of the workload cluster come before requests to the
// identity cluster.
func (h *Handler) tokenOf(ctx context.Context, name types.NamespacedName, caller boundtoken.Caller) (v1alpha1.TokenRequestStatus, string, error) {
	none := v1alpha1.TokenRequestStatus{}
	done, err := h.begin(h.known, caller.Namespace)
	if err != nil {
		return none, "", err
	}
	defer done()
	if err := h.allowed(ctx, name, caller); err != nil {
		return none, "", err
	}
	wi, err := h.Identities.Read(ctx, name.Namespace, name.Name)
	if err != nil {
		return none, "", ofIdentities(name, err)
	}
	var account *v1alpha1.ContextObject
	if h.NamesAccounts {
		account = caller.Context(caller.UID)
	}
	token, err := h.Tokens.Token(ctx, name, wi.UID, types.NamespacedName{}, account, 0)
	if err != nil {
		return none, "", ofIdentities(name, err)
	}
	inspection, err := relyingparty.Inspect(token.Reveal())
	if err != nil || inspection.Subject != wi.Status.Sub || inspection.Expiry.IsZero() {
		return none, "", unanswered("the answer of the identity cluster is not a token of WorkloadIdentity %s", name)
	}
	return v1alpha1.TokenRequestStatus{Token: token.Reveal(), ExpirationTimestamp: metav1.NewTime(inspection.Expiry), TargetSystem: &wi.Spec.TargetSystem}, inspection.ID, nil
}

// allowed returns an error unless the account of a pod may use an identity, and the pod runs.
func (h *Handler) allowed(ctx context.Context, name types.NamespacedName, caller boundtoken.Caller) error {
	if len(h.Namespaces) > 0 && !slices.Contains(h.Namespaces, caller.Namespace) {
		return forbidden(name, fmt.Sprintf("the agent delivers no tokens in namespace %s: its flag --namespaces lists others", caller.Namespace))
	}
	allowed, err := workload.MayUse(ctx, h.Rights, caller.Subject(), authority.WorkloadIdentities, name)
	switch {
	case err != nil:
		return unanswered("%v", err)
	case !allowed:
		return forbidden(name, workload.MayNotUse(caller.NamespacedName, name))
	}
	pod, err := h.Pods.Pods(caller.Namespace).Get(ctx, caller.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return forbidden(name, caller.Gone())
	case err != nil:
		return unanswered("pod %s/%s of the caller's token can't be read: %v", caller.Namespace, caller.Pod.Name, err)
	}
	if fault := caller.Fault(pod, h.Clock.Now()); fault != "" {
		return forbidden(name, fault)
	}
	return nil
}

// ofIdentities is an error of the identity cluster as the node gets it. A token of the agent that is not valid is an outage for the pod.
func ofIdentities(name types.NamespacedName, err error) error {
	var status apierrors.APIStatus
	switch cause := failures.Of(err); {
	case apierrors.IsUnauthorized(err):
		return unanswered("%s", failures.Forbidden(name, err))
	case cause == failures.AgentForbidden:
		return forbidden(name, failures.Forbidden(name, err))
	case cause == failures.Unreachable || cause == failures.ServerFailed:
		return unanswered("the identity cluster gives no token of WorkloadIdentity %s: %v", name, err)
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return err
	}
	return unanswered("the identity cluster gives no token of WorkloadIdentity %s", name)
}

func forbidden(name types.NamespacedName, reason string) error {
	return apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), name.Name, errors.New(reason))
}

// unanswered is the error of a request that may be answered later (503): a pod never takes an outage for a refusal.
func unanswered(format string, args ...any) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
}
