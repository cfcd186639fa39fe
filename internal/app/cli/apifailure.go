package cli

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/execcredential"
)

// tokenRequest is what a user requested, for failures and notes.
type tokenRequest struct {
	namespace, name string
	context         *contextReference // nil: none
	program         string            // what a user types to run this program
}

// failure words an error of the API as kubectl does, and adds what to do about it. doing is the operation that failed.
func (r tokenRequest) failure(doing string, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return unanswered(doing, err)
	}
	status := answer.Status()
	failed := &failure{line: serverLine(status), hint: r.hint(status), code: exitRefused, err: err}
	if status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests {
		failed.code = exitOutage
	}
	return failed
}

// unanswered words an error for which the API server did not answer.
func unanswered(doing string, err error) *failure {
	hint, code := "check that the API server is running and can be reached from here", exitOutage
	text := err.Error()
	// All errors of a program's run begin like this, and the error of a request that waits for one.
	if strings.Contains(text, "exec credential: ") || strings.Contains(text, "wait for the credential of program ") {
		hint = "no request was sent to the API server: the program that the kubeconfig names for credentials could not be run, or has failed, for the reason above"
		if needsPerson(err) {
			code = exitNeedsPerson
		}
		if exit, ok := errors.AsType[*execcredential.ExitError](err); ok {
			unsaid := *exit
			unsaid.Stderr = "" // it has been shown, as it came
			text = unsaid.Error()
		}
	}
	return &failure{line: fmt.Sprintf("error: %s: %s", doing, text), hint: hint, code: code, err: err}
}

// serverLine is what kubectl prints of a status.
func serverLine(status metav1.Status) string {
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

func (r tokenRequest) hint(status metav1.Status) string {
	switch status.Code {
	case http.StatusUnauthorized:
		return "the credentials of the kubeconfig are missing, wrong or expired: log in again, or choose others by --kube-context or --user"
	case http.StatusForbidden:
		return r.missingRight(status.Message)
	case http.StatusNotFound:
		return r.whatIsMissing(status)
	case http.StatusConflict:
		return "the identity or its context was deleted or created anew meanwhile: look at both, and try again"
	case http.StatusUnprocessableEntity:
		return "correct the named fields, and try again"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		hint := seeAPIService(v1alpha1.SchemeGroupVersion)
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			hint = fmt.Sprintf("a user with ClusterRole credence:keyrings:viewer sees from when a key may sign: %s keys list; %s", r.program, hint)
		}
		return hint
	}
	return ""
}

// seeAPIService is how to see whether a group of the API is available.
func seeAPIService(group schema.GroupVersion) string {
	return fmt.Sprintf("a cluster admin sees whether Credence's API is available: kubectl get apiservice %s.%s", group.Version, group.Group)
}

// rbacRefusal is how the RBAC authorizer of Kubernetes words that a right is missing.
var rbacRefusal = regexp.MustCompile(`User "([^"]*)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"`)

// missingRight names the verb and the resource of the right that is missing. Kubernetes names them; if the refusal is worded otherwise,
// all that a token needs are named.
func (r tokenRequest) missingRight(message string) string {
	if m := rbacRefusal.FindStringSubmatch(message); m != nil && r.namespace == "" {
		return fmt.Sprintf("user %q lacks the verb %q on %q (API group %q) in all namespaces: look at one namespace by -n in place of -A, or ask for a ClusterRole and ClusterRoleBinding that give it", m[1], m[2], m[3], m[4])
	} else if m != nil {
		return fmt.Sprintf("user %q lacks the verb %q on %q (API group %q) in namespace %q: ask for a Role and RoleBinding that give it",
			m[1], m[2], m[3], m[4], r.namespace)
	}
	hint := fmt.Sprintf(`a token needs, in namespace %q: you the verb "create" on "workloadidentities/token"`, r.namespace)
	if r.context != nil {
		hint += fmt.Sprintf(`, you the verbs "get" and "impersonate" on %q, and %s %q the verb "use" on "workloadidentities"`,
			r.context.resource, r.context.kind, r.context.name)
	}
	return hint + fmt.Sprintf(" (workloadidentities are of API group %q)", v1alpha1.GroupName)
}

func (r tokenRequest) whatIsMissing(status metav1.Status) string {
	details := status.Details
	switch {
	// The API server answers so where nothing serves the path at all.
	case details == nil || details.Name == "" || strings.Contains(status.Message, "the server could not find the requested resource"):
		return fmt.Sprintf("Credence's API (%s) is not installed in this cluster: choose another one by --kube-context, or install it", v1alpha1.SchemeGroupVersion)
	case r.context != nil && details.Name == r.context.name && details.Group == "":
		return fmt.Sprintf("see which there are, if you may list them: kubectl get %s -n %s", r.context.resource, r.namespace)
	default:
		return fmt.Sprintf("see which there are, if you may list them: kubectl get workloadidentities -n %s", r.namespace)
	}
}
