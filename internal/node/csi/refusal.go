package csi

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/wording"
)

// longestRefusal bounds what others have written, in a message that an Event of the pod has.
const longestRefusal = 600

// refused is the error of a call whose request for a token the API has refused, with the time on this node: the kubelet shows its message in an Event of
// the pod.
func refused(r request, err error, now time.Time) error {
	why := wording.AbbreviateTo(wording.OneLine(wording.Redact(err.Error())), longestRefusal)
	cause := failures.Of(err)
	switch {
	case apierrors.IsNotFound(err) && cause == failures.Unreachable:
		return status.Errorf(codes.FailedPrecondition, "no token of %s: the API has no workloadidentities/selftoken (%s): its server is older than this node's driver, or is not registered: an admin of the identity cluster upgrades it (docs/howto/upgrade.md), or, where identities are of another cluster, gives the driver the address of the agent (docs/howto/tokens-without-secrets.md); until then the pod can mount a Secret with the token (docs/howto/deliver-into-a-secret.md)", r, why)
	case cause == failures.IdentityMissing:
		return status.Errorf(codes.NotFound, "no token of %s: the identity does not exist: create it, or name another one in attribute workloadIdentity of the volume", r)
	case apierrors.IsUnauthorized(err):
		return status.Errorf(codes.Unauthenticated, "no token of %s: the API server does not accept the pod's service-account token, which expires at %s: %s. If the service account was deleted and created again, its pods keep the old token for up to 8 minutes: delete the pod to get a new one. The clock of this node is at %s: if that is wrong, an admin of the node sets it",
			r, r.podTokenExpiry.UTC().Format(time.RFC3339), why, now.UTC().Format(time.RFC3339))
	case cause == failures.AgentForbidden:
		return status.Errorf(codes.PermissionDenied, "no token of %s: %s", r, why)
	case cause == failures.Throttled:
		return status.Errorf(codes.ResourceExhausted, "no token of %s: the API takes no more requests now, and the request is repeated: %s", r, why)
	case cause == failures.Unreachable || cause == failures.ServerFailed || cause == failures.NoSigningKey:
		return status.Errorf(codes.Unavailable, "no token of %s: the API gives none now, and the request is repeated: %s", r, why)
	default:
		return status.Errorf(codes.FailedPrecondition, "no token of %s: %s", r, why)
	}
}

// tooMany is the error of a call for one volume more than a pod may have.
func tooMany(r request) error {
	return status.Errorf(codes.FailedPrecondition, "no token of %s: the pod has more than %d volumes of driver %s, and the node has memory for no more of them: the pod's author leaves some out; one volume can be mounted by all of its containers", r, mostOfPod, Name)
}

// unanswered is the error of a call that succeeds once another part works again.
func unanswered(err error) error { return status.Error(codes.Unavailable, err.Error()) }

// unwritten is the error of a call whose volume could not be made or changed.
func unwritten(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("the volume is full, and keeps the files that it has: %v: an admin of the node looks what has written into it", err))
	}
	return status.Error(codes.Internal, err.Error())
}
