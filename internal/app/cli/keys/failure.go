package keys

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// apiFailure words an error of the API as kubectl does, and adds what to do about it. program is what a user types to run
// this program, doing the operation that failed.
func apiFailure(program, doing string, err error) *command.Failure {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return connection.Unanswered(doing, err)
	}
	status := answer.Status()
	failed := &command.Failure{Line: connection.ServerLine(status), Hint: keysHint(program, status), Code: command.ExitRefused, Err: err}
	switch refusedFor(err) {
	case keys.BadCommand:
		failed.Line = fmt.Sprintf("Error from server (%s): %s", status.Reason, status.Message)
	case keys.Superseded:
		failed.Hint = fmt.Sprintf("nothing was changed: put the newest ring back, or see what goes on without it: %s keys initialize --dry-run --reason TEXT", program)
	}
	if status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests {
		failed.Code = command.ExitOutage
	}
	return failed
}

func keysHint(program string, status metav1.Status) string {
	switch status.Code {
	case http.StatusUnauthorized:
		return "the credentials of the kubeconfig are missing, wrong or expired: log in again, or choose others by --kube-context or --user"
	case http.StatusForbidden:
		needed := "ask for a ClusterRoleBinding to credence:keyrings:viewer to look at keys, and to credence:keyrings:operator to change them"
		if right, ok := cluster.MissingRight(status.Message); ok {
			return fmt.Sprintf("user %q lacks the verb %q on %q (API group %q): %s", right.User, right.Verb, right.Resource, right.Group, needed)
		}
		return needed
	case http.StatusNotFound:
		if status.Details == nil || status.Details.Name == "" || strings.Contains(status.Message, "the server could not find the requested resource") {
			return fmt.Sprintf("Credence's API (%s) is not installed in this cluster: choose another one by --kube-context, or install it", v1alpha1.SchemeGroupVersion)
		}
		return fmt.Sprintf("see which keys there are: %s keys list", program)
	case http.StatusUnprocessableEntity:
		return "correct what is named, and try again"
	case http.StatusInternalServerError:
		return fmt.Sprintf("look at the keys before you try again: %s keys list", program)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return cluster.SeeAPIService(v1alpha1.SchemeGroupVersion)
	}
	return ""
}

// refusedFor is the reason for which a ring refuses a command, whether it is behind an API or in a folder; empty if the
// error is not a refusal of a ring.
func refusedFor(err error) keys.RefusalReason {
	if refused, ok := errors.AsType[*keys.Refused](err); ok {
		return refused.Reason
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	details := answer.Status().Details
	if details == nil || len(details.Causes) == 0 {
		return ""
	}
	switch reason := keys.RefusalReason(details.Causes[0].Type); reason {
	case keys.BadCommand, keys.NoSuchKey, keys.AlreadyDone, keys.TooYoung, keys.UnknownToGates, keys.TooManyKeys, keys.Superseded:
		return reason
	}
	return ""
}
