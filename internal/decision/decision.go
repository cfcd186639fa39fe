// Package decision is the common part of what rules of admission decide: a refusal with its reason, or a patch. In go
// an object and a patch, out come plain values, and the object that the patch makes; it decides nothing, and makes no requests.
package decision

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is a decision: a Denial, or a patch and warnings.
type Result struct {
	Denial *Denial
	// Patch is empty where nothing is to be changed.
	Patch []Operation
	// Warnings are for the author of the request.
	Warnings []string
}

// Denial is the reason why an object is refused, with the correction.
type Denial struct {
	// Code is 403 where something is not allowed or does not exist, 422 where something is wrong, 400 where a request is.
	Code    int32
	Reason  metav1.StatusReason
	Message string
	// Field is the path of the field that is refused; it may be empty.
	Field string `json:",omitempty"`
	// Absent reports whether the refusal is that an identity or a credential spec does not exist.
	Absent bool `json:"-"`
	// Others are further reasons to refuse the same object, which may be shown with this one.
	Others []*Denial `json:",omitempty"`
}

// At is the Denial of a field.
func (d *Denial) At(field string) *Denial {
	d.Field = field
	return d
}

// OfAbsent is the Denial of an object that names another one, which does not exist.
func (d *Denial) OfAbsent() *Denial {
	d.Absent = true
	return d
}

// Forbidden is a Denial of an object that is not allowed, or does not exist.
func Forbidden(message string) *Denial {
	return &Denial{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}
}

// Invalid is a Denial of an invalid object.
func Invalid(message string) *Denial {
	return &Denial{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: message}
}

// BadRequest is a Denial of a request that can never be carried out.
func BadRequest(message string) *Denial {
	return &Denial{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: message}
}

// Operation is one step of a JSON patch (RFC 6902). Value is nil where the operation has none.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}
