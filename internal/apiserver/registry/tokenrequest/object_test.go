package tokenrequest

import (
	"reflect"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
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

// With metadata that it finds, the API machinery would record the owners of fields that are never stored.
func TestObjectHasNoFieldOwners(t *testing.T) {
	if _, err := meta.Accessor(&Object{}); err == nil {
		t.Error("the API machinery finds the metadata of a TokenRequest")
	}
}

func TestNamespaceOfTheRequest(t *testing.T) {
	rest, recorder := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, testRing)
	for namespace, ok := range map[string]bool{"": true, "ns": true, "other": false} {
		_, err := rest.Create(callerContext(t), "one", &Object{Metadata: metav1.ObjectMeta{Namespace: namespace}}, nil, &metav1.CreateOptions{})
		if ok != (err == nil) || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
	if recorder.issued != 2 {
		t.Errorf("%d tokens issued, want 2", recorder.issued)
	}
}
