package tokenrequest

import (
	"reflect"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The server's type and the published one are the same JSON.
func TestObjectIsATokenRequest(t *testing.T) {
	published, served := reflect.TypeFor[v1alpha1.TokenRequest](), reflect.TypeFor[Object]()
	if published.NumField() != served.NumField() {
		t.Fatalf("%d fields, want %d", served.NumField(), published.NumField())
	}
	for i := range published.NumField() {
		want, got := published.Field(i), served.Field(i)
		if got.Type != want.Type || got.Tag != want.Tag {
			t.Errorf("field %s %s %s, want %s %s", got.Name, got.Type, got.Tag, want.Type, want.Tag)
		}
	}
	all := &v1alpha1.TokenRequest{
		TypeMeta: metav1.TypeMeta{Kind: "TokenRequest"}, ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: withContext().Spec, Status: v1alpha1.TokenRequestStatus{Token: "token"},
	}
	if diff := cmp.Diff(all, objectOf(all).DeepCopyObject().(*Object).request()); diff != "" {
		t.Error(diff)
	}
}

// The API machinery keeps no owners of fields where an empty object has no metadata. Admission needs that of each request.
func TestMetadataOfAnObject(t *testing.T) {
	if _, err := meta.Accessor(&Object{}); err == nil {
		t.Error("an empty object has metadata")
	}
	request := &Object{TypeMeta: metav1.TypeMeta{Kind: "TokenRequest"}, Metadata: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	found, err := meta.Accessor(request.DeepCopyObject())
	if err != nil || found.GetLabels()["a"] != "b" {
		t.Errorf("metadata of a request: %v, %v", found, err)
	}
}
