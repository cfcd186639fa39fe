package tokensecret

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// Request is the request of a Secret: tokens of an identity, with or without a context. It names the identity, or a CredentialsBinding that
// refers to one. With a binding and a context, which the agent alone writes, it is one for the data of the binding.
type Request struct {
	Identity types.NamespacedName
	Binding  types.NamespacedName
	Context  *v1alpha1.ContextObject
}

// AnnotationError names an invalid annotation of a Secret, and the fault.
type AnnotationError struct {
	Annotation string
	Err        error
}

func (e *AnnotationError) Error() string {
	return fmt.Sprintf("annotation %s: %v", e.Annotation, e.Err)
}
func (e *AnnotationError) Unwrap() error { return e.Err }

// Labelled reports whether an object is marked as a Secret that is to carry a token.
func Labelled(object metav1.Object) bool {
	return object.GetLabels()[v1alpha1.LabelPurpose] == v1alpha1.PurposeTokenRequestor
}

// Parse reads the request of a Secret. The error is an *AnnotationError.
func Parse(object metav1.Object) (Request, error) {
	annotations := object.GetAnnotations()
	namespace := annotations[v1alpha1.AnnotationNamespace]
	kind, annotation := "WorkloadIdentity", v1alpha1.AnnotationName
	if _, bound := annotations[v1alpha1.AnnotationBinding]; bound {
		if _, named := annotations[v1alpha1.AnnotationName]; named {
			return Request{}, &AnnotationError{v1alpha1.AnnotationBinding, fmt.Errorf("must not be set beside %s: a Secret names a WorkloadIdentity or a CredentialsBinding", v1alpha1.AnnotationName)}
		}
		kind, annotation = "CredentialsBinding", v1alpha1.AnnotationBinding
	}
	named := types.NamespacedName{Namespace: namespace, Name: annotations[annotation]}
	if named.Name == "" {
		return Request{}, &AnnotationError{annotation, fmt.Errorf("is missing: it names the %s", kind)}
	}
	if problems := validation.IsDNS1123Subdomain(named.Name); len(problems) > 0 {
		return Request{}, &AnnotationError{annotation, fmt.Errorf("%q is not a valid name of a %s: %s", wording.Abbreviate(named.Name), kind, problems[0])}
	}
	if namespace == "" {
		return Request{}, &AnnotationError{v1alpha1.AnnotationNamespace, fmt.Errorf("is missing: it names the namespace of the %s", kind)}
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return Request{}, &AnnotationError{v1alpha1.AnnotationNamespace, fmt.Errorf("%q is not a valid name of a namespace: %s", wording.Abbreviate(namespace), problems[0])}
	}
	request := Request{Identity: named}
	if annotation == v1alpha1.AnnotationBinding {
		request = Request{Binding: named}
	}
	text, present := annotations[v1alpha1.AnnotationContextObject]
	if !present {
		return request, nil
	}
	context, err := ParseContext(text)
	if err != nil {
		return Request{}, &AnnotationError{v1alpha1.AnnotationContextObject, err}
	}
	if request.Binding.Name != "" && (annotations[v1alpha1.AnnotationContextDelivery] == "" || ServiceAccountContext(context)) {
		return Request{}, &AnnotationError{v1alpha1.AnnotationContextObject, fmt.Errorf("must not be set beside %s: leave it out", v1alpha1.AnnotationBinding)}
	}
	request.Context = context
	return request, nil
}
