package tokenrequest

import (
	"fmt"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFieldLength bounds what a caller can make the server repeat in messages and audit events.
const maxFieldLength = 253

// validate returns the row of the table that the context object belongs to, nil without one, or all faults
// of the request as one 422.
func (r *REST) validate(tr *v1alpha1.TokenRequest) (*ContextKind, error) {
	spec := field.NewPath("spec")
	errs := r.validateDuration(tr.Spec.Duration, spec.Child("duration"))
	kind, contextErrs, err := r.validateContext(tr.Spec.ContextObject, spec.Child("contextObject"))
	if err != nil {
		return nil, err
	}
	if errs = append(errs, contextErrs...); len(errs) > 0 {
		return nil, invalid(tr.Name, errs)
	}
	return kind, nil
}

func (r *REST) validateDuration(d *metav1.Duration, path *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	if d.Duration == 0 {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), fmt.Sprintf("must not be shorter than %s", r.Lifetimes.Min))}
	}
	if _, _, err := r.Lifetimes.Grant(d.Duration); err != nil {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), err.Error())}
	}
	return nil
}

func (r *REST) validateContext(object *v1alpha1.ContextObject, path *field.Path) (*ContextKind, field.ErrorList, error) {
	if object == nil {
		return nil, nil, nil
	}
	var errs field.ErrorList
	for _, required := range []struct{ name, value string }{
		{"apiVersion", object.APIVersion}, {"kind", object.Kind}, {"name", object.Name}, {"uid", string(object.UID)},
	} {
		if required.value == "" {
			errs = append(errs, field.Required(path.Child(required.name), "a context object is named in full"))
		} else if len(required.value) > maxFieldLength {
			errs = append(errs, field.TooLong(path.Child(required.name), "", maxFieldLength))
		}
	}
	if uid := string(object.UID); !identity.Printable(uid) {
		errs = append(errs, field.Invalid(path.Child("uid"), wording.Abbreviate(uid), "must be printable ASCII without spaces"))
	}
	if object.Name != "" && len(object.Name) <= maxFieldLength {
		for _, message := range validation.NameIsDNSSubdomain(object.Name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), object.Name, message))
		}
	}
	if len(errs) > 0 {
		return nil, errs, nil
	}
	kind, err := r.kindOf(object)
	if err != nil {
		return nil, nil, err
	}
	if kind == nil {
		return nil, field.ErrorList{field.NotSupported(path.Child("kind"), object.APIVersion+" "+object.Kind, r.supportedContexts())}, nil
	}
	return kind, validateNamespace(kind, object, path.Child("namespace")), nil
}

// kindOf is the row of a context object; nil without one.
func (r *REST) kindOf(object *v1alpha1.ContextObject) (*ContextKind, error) {
	for i, row := range r.Contexts {
		if row.APIVersion == object.APIVersion && row.Kind == object.Kind {
			return &r.Contexts[i], nil
		}
	}
	kind, err := r.Objects.Kind(object.APIVersion, object.Kind)
	if kind == nil || err != nil {
		return nil, err
	}
	return rowOf(kind), nil
}

func validateNamespace(kind *ContextKind, object *v1alpha1.ContextObject, path *field.Path) field.ErrorList {
	switch {
	case kind.Namespaced && object.Namespace == "":
		return field.ErrorList{field.Required(path, "a "+kind.Kind+" has a namespace")}
	case !kind.Namespaced && object.Namespace != "":
		return field.ErrorList{field.Forbidden(path, "a "+kind.Kind+" has no namespace")}
	case kind.Namespaced && len(object.Namespace) > maxFieldLength:
		return field.ErrorList{field.TooLong(path, "", maxFieldLength)}
	case kind.Namespaced:
		if messages := validation.ValidateNamespaceName(object.Namespace, false); len(messages) > 0 {
			return field.ErrorList{field.Invalid(path, strings.ToValidUTF8(object.Namespace, "?"), strings.Join(messages, ", "))}
		}
	}
	return nil
}

func (r *REST) supportedContexts() []string {
	supported := make([]string, 0, len(r.Contexts))
	for _, k := range r.Contexts {
		supported = append(supported, k.APIVersion+" "+k.Kind)
	}
	return append(supported, r.Objects.Supported()...)
}
