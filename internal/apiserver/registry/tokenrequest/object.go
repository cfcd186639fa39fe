package tokenrequest

import (
	"io"

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
	// answer is set for what is sent to a client.
	answer bool
}

var _ runtime.CacheableObject = &Object{}

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
func (o *Object) DeepCopyObject() runtime.Object {
	copied := objectOf(o.request().DeepCopy())
	copied.answer = o.answer
	return copied
}

// CacheEncode implements runtime.CacheableObject. The API machinery encodes each request for its audit event, whatever the level is. Requests for
// tokens are recorded at level Metadata at most, without the object, so nothing is written of them.
func (o *Object) CacheEncode(_ runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if !o.answer {
		return nil
	}
	return encode(o, w)
}

// GetObject implements runtime.CacheableObject.
func (o *Object) GetObject() runtime.Object { return o.DeepCopyObject() }

// OpenAPIModelName returns the name of the schema of v1alpha1.TokenRequest.
func (Object) OpenAPIModelName() string { return v1alpha1.TokenRequest{}.OpenAPIModelName() }
