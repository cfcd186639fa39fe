package tokenrequest

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The server's type and the published one are the same JSON.
func TestObjectIsATokenRequest(t *testing.T) {
	published, served := reflect.TypeFor[v1alpha1.TokenRequest](), reflect.TypeFor[Object]()
	exported := slices.DeleteFunc(reflect.VisibleFields(served), func(f reflect.StructField) bool { return !f.IsExported() || len(f.Index) > 1 })
	if published.NumField() != len(exported) {
		t.Fatalf("%d fields, want %d", len(exported), published.NumField())
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

// Nothing is written of a request, and an answer is written as it is, also of a copy.
func TestRequestsAreNotEncoded(t *testing.T) {
	encoded := func(o *Object) string {
		var text strings.Builder
		testkit.Must(t, o.CacheEncode("", func(o runtime.Object, w io.Writer) error {
			_, err := io.WriteString(w, o.(*Object).Status.Token)
			return err
		}, &text))
		return text.String()
	}
	object := Object{Status: v1alpha1.TokenRequestStatus{Token: "token"}}
	if got := encoded(&object); got != "" {
		t.Errorf("of a request %q was written", got)
	}
	object.answer = true
	for _, answer := range []runtime.Object{&object, object.GetObject()} {
		if got := encoded(answer.(*Object)); got != "token" {
			t.Errorf("of an answer %q was written", got)
		}
	}
}
