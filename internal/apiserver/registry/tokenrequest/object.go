package tokenrequest

import (
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a v1alpha1.TokenRequest as the server's scheme has it, with the same JSON. The API machinery compares what a client
// creates with an empty object, and records which client set which field, unless the empty object has no metadata. The record
// costs more than an ES256 signature, and a TokenRequest is never stored. So an Object has metadata once it has a kind, as each
// has that was decoded: admission, audit and preconditions find it there.
type Object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta           `json:"metadata,omitempty"`
	Spec            v1alpha1.TokenRequestSpec   `json:"spec,omitempty"`
	Status          v1alpha1.TokenRequestStatus `json:"status,omitempty"`
}

func objectOf(tr *v1alpha1.TokenRequest) *Object {
	return &Object{TypeMeta: tr.TypeMeta, Metadata: tr.ObjectMeta, Spec: tr.Spec, Status: tr.Status}
}

func (o *Object) request() *v1alpha1.TokenRequest {
	return &v1alpha1.TokenRequest{TypeMeta: o.TypeMeta, ObjectMeta: o.Metadata, Spec: o.Spec, Status: o.Status}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (o *Object) GetObjectMeta() metav1.Object {
	if o.Kind == "" {
		return nil
	}
	return &o.Metadata
}

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return objectOf(o.request().DeepCopy()) }

// OpenAPIModelName returns the name of the schema of v1alpha1.TokenRequest.
func (Object) OpenAPIModelName() string { return v1alpha1.TokenRequest{}.OpenAPIModelName() }
