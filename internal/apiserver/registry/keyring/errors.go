package keyring

import (
	"errors"
	"fmt"
	"net/http"
	"unicode"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failure gives the API error of a command that was not carried out. The reason of a refusal is the type of its cause.
func failure(name string, err error) error {
	if refused, ok := errors.AsType[*keys.Refused](err); ok {
		return refusal(name, refused)
	}
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	if errors.Is(err, operation.ErrUnknownOutcome) {
		return apierrors.NewInternalError(fmt.Errorf("%w: look at the key ring before you try again", err))
	}
	if errors.Is(err, operation.ErrSuperseded) {
		return refusal(name, &keys.Refused{Reason: keys.Superseded, Message: err.Error()})
	}
	return apierrors.NewInternalError(err)
}

func refusal(name string, refused *keys.Refused) error {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: refused.Message,
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupName, Kind: "keyrings", Name: name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(refused.Reason), Message: refused.Message}},
		},
	}
	switch refused.Reason {
	case keys.BadCommand:
		status.Code, status.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	case keys.NoSuchKey:
		status.Code, status.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func invalid(kind, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind(), name, errs)
}

// recordable makes a user's name fit for the ring's history: unprintable characters are replaced, the end is cut off, and
// no user can have the key controller's name.
func recordable(name string) string {
	if name == keys.Controller {
		return "user " + name
	}
	const most = 256
	safe := make([]rune, 0, len(name))
	size := 0
	for _, char := range name {
		if !unicode.IsPrint(char) {
			char = '?'
		}
		if size += len(string(char)); size > most {
			break
		}
		safe = append(safe, char)
	}
	return string(safe)
}
