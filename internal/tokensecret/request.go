package tokensecret

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Request is the request of a Secret: tokens of an identity, with or without a context.
type Request struct {
	Identity types.NamespacedName
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
	var request Request
	for annotation, part := range map[string]*string{v1alpha1.AnnotationName: &request.Identity.Name, v1alpha1.AnnotationNamespace: &request.Identity.Namespace} {
		*part = annotations[annotation]
	}
	if request.Identity.Name == "" {
		return Request{}, &AnnotationError{v1alpha1.AnnotationName, errors.New("is missing: it names the WorkloadIdentity")}
	}
	if problems := validation.IsDNS1123Subdomain(request.Identity.Name); len(problems) > 0 {
		return Request{}, &AnnotationError{v1alpha1.AnnotationName, fmt.Errorf("%q is not a valid name of a WorkloadIdentity: %s", abbreviate(request.Identity.Name), problems[0])}
	}
	if request.Identity.Namespace == "" {
		return Request{}, &AnnotationError{v1alpha1.AnnotationNamespace, errors.New("is missing: it names the namespace of the WorkloadIdentity")}
	}
	if problems := validation.IsDNS1123Label(request.Identity.Namespace); len(problems) > 0 {
		return Request{}, &AnnotationError{v1alpha1.AnnotationNamespace, fmt.Errorf("%q is not a valid name of a namespace: %s", abbreviate(request.Identity.Namespace), problems[0])}
	}
	text, present := annotations[v1alpha1.AnnotationContextObject]
	if !present {
		return request, nil
	}
	context, err := ParseContext(text)
	if err != nil {
		return Request{}, &AnnotationError{v1alpha1.AnnotationContextObject, err}
	}
	if !ServiceAccountContext(context) {
		return Request{}, &AnnotationError{v1alpha1.AnnotationContextObject,
			fmt.Errorf("names a %s %s, and no token is issued with such a context: leave it out", abbreviate(context.APIVersion), abbreviate(context.Kind))}
	}
	request.Context = context
	return request, nil
}

func abbreviate(s string) string {
	const shown = 64
	if runes := []rune(s); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return s
}
