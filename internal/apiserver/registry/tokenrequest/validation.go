package tokenrequest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFieldLength bounds what a caller can make the server repeat in messages and audit events.
const maxFieldLength = 253

// validate returns the row of the table that the context object belongs to, nil without one, or all faults
// of the request as one 422.
func (r *REST) validate(tr *v1alpha1.TokenRequest) (*ContextKind, error) {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if d := tr.Spec.Duration; d != nil {
		if d.Duration == 0 {
			errs = append(errs, field.Invalid(spec.Child("duration"), d.Duration.String(), fmt.Sprintf("must not be shorter than %s", r.Lifetimes.Min)))
		} else if _, _, err := r.Lifetimes.Grant(d.Duration); err != nil {
			errs = append(errs, field.Invalid(spec.Child("duration"), d.Duration.String(), err.Error()))
		}
	}
	kind, contextErrs := r.validateContext(tr.Spec.ContextObject, spec.Child("contextObject"))
	if errs = append(errs, contextErrs...); len(errs) > 0 {
		return nil, invalid(tr.Name, errs)
	}
	return kind, nil
}

func (r *REST) validateContext(object *v1alpha1.ContextObject, path *field.Path) (*ContextKind, field.ErrorList) {
	if object == nil {
		return nil, nil
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
	if object.Name != "" && len(object.Name) <= maxFieldLength {
		for _, message := range validation.NameIsDNSSubdomain(object.Name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), object.Name, message))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	i := slices.IndexFunc(r.Contexts, func(k ContextKind) bool {
		return k.APIVersion == object.APIVersion && k.Kind == object.Kind
	})
	if i < 0 {
		return nil, field.ErrorList{field.NotSupported(path.Child("kind"), object.APIVersion+" "+object.Kind, r.supportedContexts())}
	}
	kind := &r.Contexts[i]
	return kind, validateNamespace(kind, object, path.Child("namespace"))
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
	return supported
}
