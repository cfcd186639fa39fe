package connection

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/internal/wording"
)

// Request is what a user requested, for failures and notes.
type Request struct {
	Namespace, Name string
	Context         *Object // nil: none
	Program         string  // what a user types to run this program
	All             bool    // -A was given
	TokenFile       string  // that of the kubeconfig; empty without one
}

// Failure words an error of the API as kubectl does, and adds what to do about it. doing is the operation that failed.
func (r Request) Failure(doing string, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return Unanswered(doing, err)
	}
	status := answer.Status()
	failed := &command.Failure{Line: ServerLine(status), Hint: r.hint(status, apierrors.HasStatusCause(err, v1alpha1.CauseNoSigningKey)), Code: command.ExitRefused, Err: err}
	if status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests {
		failed.Code = command.ExitOutage
	}
	return failed
}

// Unanswered words an error for which the API server did not answer.
func Unanswered(doing string, err error) *command.Failure {
	hint, code := "check that the API server is running and can be reached from here", command.ExitOutage
	text := err.Error()
	// All errors of a program's run begin like this, and the error of a request that waits for one.
	if errors.Is(err, cluster.ErrNewer) {
		hint, code = "use credence of the version that is installed, or a later one: this one would drop the fields", command.ExitRefused
	}
	if strings.Contains(text, "exec credential: ") || strings.Contains(text, "wait for the credential of program ") {
		hint = "no request was sent to the API server: the program that the kubeconfig names for credentials could not be run, or has failed, for the reason above"
		if needsPerson(err) {
			code = command.ExitNeedsPerson
		}
		if exit, ok := errors.AsType[*execcredential.ExitError](err); ok {
			unsaid := *exit
			unsaid.Stderr = "" // it has been shown, as it came
			text = unsaid.Error()
		}
	}
	return &command.Failure{Line: fmt.Sprintf("error: %s: %s", doing, text), Hint: hint, Code: code, Err: err}
}

// ServerLine is what kubectl prints of a status.
func ServerLine(status metav1.Status) string {
	switch {
	case status.Reason == metav1.StatusReasonInvalid && status.Details != nil && len(status.Details.Causes) > 0:
		line := fmt.Sprintf("The %s %q is invalid:", status.Details.Kind, status.Details.Name)
		if len(status.Details.Causes) == 1 {
			cause := status.Details.Causes[0]
			return fmt.Sprintf("%s %s: %s", line, cause.Field, cause.Message)
		}
		for _, cause := range status.Details.Causes {
			line += fmt.Sprintf("\n* %s: %s", cause.Field, cause.Message)
		}
		return line
	case status.Reason == metav1.StatusReasonUnauthorized:
		return fmt.Sprintf("error: You must be logged in to the server (%s)", status.Message)
	case status.Reason == "":
		return "Error from server: " + status.Message
	default:
		return fmt.Sprintf("Error from server (%s): %s", status.Reason, status.Message)
	}
}

// hint is what to do about an error. unsigned is true if no key may sign now.
func (r Request) hint(status metav1.Status, unsigned bool) string {
	switch status.Code {
	case http.StatusUnauthorized:
		if token, err := membership.Read(r.TokenFile); err == nil {
			return failures.Rejoin(token.Secret.Name, "")
		}
		return "the credentials of the kubeconfig are missing, wrong or expired: log in again, or choose others by --kube-context or --user"
	case http.StatusForbidden:
		return r.rightHint(status.Message)
	case http.StatusNotFound:
		return r.whatIsMissing(status)
	case http.StatusConflict:
		return "the identity or its context was deleted or created anew meanwhile: look at both, and try again"
	case http.StatusUnprocessableEntity:
		return "correct the named fields, and try again"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		hint := cluster.SeeAPIService(v1alpha1.SchemeGroupVersion)
		switch {
		case unsigned:
			hint = fmt.Sprintf("a user with ClusterRole credence:keyrings:viewer sees from when a key may sign: %s keys list; %s", r.Program, hint)
		case status.Details != nil && status.Details.RetryAfterSeconds > 0:
			hint = fmt.Sprintf("try again in %s; if it stays so, a cluster admin sees why: %s doctor", wording.Plural(int(status.Details.RetryAfterSeconds), "second", "seconds"), cmp.Or(r.Program, "credence"))
		}
		return hint
	}
	return ""
}

// rightHint names the verb and the resource of the right that is missing. Kubernetes names them; if the refusal is worded otherwise,
// all that a token needs are named.
func (r Request) rightHint(message string) string {
	if right, ok := cluster.MissingRight(message); ok {
		where := fmt.Sprintf("in namespace %q: ask for a Role and RoleBinding that give it", r.Namespace)
		switch {
		case r.All:
			where = "in all namespaces: look at one namespace by -n in place of -A, or ask for a ClusterRole and ClusterRoleBinding that give it"
		case r.Namespace == "":
			where = "at the cluster scope: ask for a ClusterRole and ClusterRoleBinding that give it"
		}
		return fmt.Sprintf("user %q lacks the verb %q on %q (API group %q) %s", right.User, right.Verb, right.Resource, right.Group, where)
	}
	hint := fmt.Sprintf(`a token needs, in namespace %q: you the verb "create" on "workloadidentities/token"`, r.Namespace)
	if r.Context != nil {
		hint += fmt.Sprintf(`, you the verbs "get" and "impersonate" on %q`, r.Context.Title())
		if r.Context.Kind == serviceAccounts {
			hint += fmt.Sprintf(`, and ServiceAccount %q the verb "use" on "workloadidentities"`, r.Context.Name)
		}
	}
	return hint + fmt.Sprintf(" (workloadidentities are of API group %q)", v1alpha1.GroupName)
}

// ofAccounts are the resources of accounts.credence.dev: a server that serves none of a path names the resource alone.
var ofAccounts = []string{"serviceaccountprofiles", "securitycontexttemplates", "namespacetemplates"}

func (r Request) whatIsMissing(status metav1.Status) string {
	details := status.Details
	switch {
	// The API server answers so where nothing serves the path at all.
	case details == nil || details.Name == "" || strings.Contains(status.Message, "the server could not find the requested resource"):
		api := v1alpha1.SchemeGroupVersion
		if details != nil && slices.Contains(ofAccounts, details.Kind) {
			api = accounts.SchemeGroupVersion
		}
		return fmt.Sprintf("Credence's API (%s) is not installed in this cluster: choose another one by --kube-context, or install it", api)
	case r.Context != nil && details.Name == r.Context.Name && details.Kind == r.Context.Resource:
		return fmt.Sprintf("see which there are, if you may list them: kubectl get %s -n %s", r.Context.Title(), r.Namespace)
	default:
		return fmt.Sprintf("see which there are, if you may list them: kubectl get workloadidentities -n %s", r.Namespace)
	}
}

// ObjectFailure words an error on an object other than an identity.
func (r Request) ObjectFailure(doing string, err error) error {
	failed, ok := errors.AsType[*command.Failure](r.Failure(doing, err))
	if ok && strings.Contains(failed.Hint, "kubectl get workloadidentities") {
		failed.Hint = ""
	}
	return failed
}
