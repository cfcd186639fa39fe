package tokenrequest

import (
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a v1alpha1.TokenRequest as the server's scheme has it: the same JSON, with metadata that the API machinery does not
// find. The machinery records for each object that has metadata which client set which field, which costs more than an ES256
// signature, and a TokenRequest is never stored.
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

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return objectOf(o.request().DeepCopy()) }

// OpenAPIModelName returns the name of the schema of v1alpha1.TokenRequest.
func (Object) OpenAPIModelName() string { return v1alpha1.TokenRequest{}.OpenAPIModelName() }
