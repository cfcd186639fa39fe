package kubeapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/credential"
)

// rights are what a request needs.
type rights struct{ verb, resource, subresource, group, namespace string }

func (r rights) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	if r.group != "" {
		resource += "." + r.group
	}
	text := fmt.Sprintf("%q on %q", r.verb, resource)
	if r.namespace != "" {
		text += fmt.Sprintf(" in namespace %q", r.namespace)
	}
	return text
}

// classified is an error of the API with advice: a credential.ErrRefused if the server refused, else an outage.
func (c *client) classified(err error, needed rights) error {
	if err == nil {
		return nil
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return fmt.Errorf("request to the API server %s: %w", c.access.Server, c.unreached(err))
	}
	status := answer.Status()
	text := plain(status.Message)
	if status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout ||
		status.Code < http.StatusBadRequest {
		return fmt.Errorf("the API server %s cannot answer (%d): %s", c.access.Server, status.Code, text)
	}
	return fmt.Errorf("%w by the API server %s (%d): %s%s", credential.ErrRefused, c.access.Server, status.Code, text, c.hint(status, needed))
}

// unreached is the error of a request that has no answer, without the address, and with what to do where that is known.
func (c *client) unreached(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: its certificate must be of the certificate-authority of the cluster in the kubeconfig, or in a pod of the service account's", err)
	}
	return err
}

// hint is the advice for a refusal.
func (c *client) hint(status metav1.Status, needed rights) string {
	who := fmt.Sprintf("user %q of the kubeconfig", c.access.User)
	if c.access.Pod != "" {
		who = "the service account of the pod"
	}
	switch status.Code {
	case http.StatusUnauthorized:
		return fmt.Sprintf(": the credentials of %s are missing, wrong or expired", who)
	case http.StatusForbidden:
		return fmt.Sprintf(": %s needs the verb %s", who, needed)
	case http.StatusNotFound:
		if nothingServes(&apierrors.StatusError{ErrStatus: status}) {
			return fmt.Sprintf(": this cluster does not serve %s.%s: choose another one, by another kubeconfig or context", needed.resource, needed.group)
		}
		see := "see which there are, if you may list them: kubectl get " + needed.resource
		if needed.namespace != "" {
			see += " -n " + needed.namespace
		}
		return ": " + see
	case http.StatusConflict:
		return ": it was deleted or created anew meanwhile: look at it, and try again"
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return ": correct what is named, and try again"
	}
	return ""
}

// nothingServes reports whether a 404 is about the path itself, and not about an object.
func nothingServes(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	return status.Details == nil || status.Details.Name == "" || strings.Contains(status.Message, "the server could not find the requested resource")
}

// textLimit bounds, in characters, text of a server that is shown.
const textLimit = 500

// plain is what is shown of such a text.
func plain(text string) string { return credential.Plain(text, textLimit) }
