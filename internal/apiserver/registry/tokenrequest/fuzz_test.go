package tokenrequest

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Whatever bytes come as a TokenRequest: no panic, refusals are API errors that hold no token, and a context that was
// asked for is in the token or there is no token.
func FuzzTokenRequest(f *testing.F) {
	for _, spec := range []string{
		`{}`, `{"duration":"1h"}`, `{"duration":"-1h"}`, `{"duration":"9999999h"}`, `{"contextObject":{}}`, `{"contextObject":null}`,
		`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"account","namespace":"ns","uid":"uid-of-account"}}`,
		`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"account","namespace":"ns","uid":"other"}}`,
		`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"account","uid":"uid-of-account"}}`,
		`{"contextObject":{"apiVersion":"v1","kind":"Pod","name":"\u0000","namespace":"ns","uid":"u"}}`, `[]`, `{"duration":1}`,
	} {
		f.Add([]byte(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":` + spec + `}`))
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1alpha1.SchemeGroupVersion.WithKind("TokenRequest"), &Object{})
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(v1alpha1.SchemeGroupVersion)
	f.Fuzz(func(t *testing.T, body []byte) {
		obj, _, err := decoder.Decode(body, nil, nil)
		if err != nil {
			return
		}
		asked, ok := obj.(*Object)
		rest, recorder := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, testRing)
		out, err := rest.Create(callerContext(t), "one", obj, nil, &metav1.CreateOptions{})
		if err != nil {
			if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || strings.Contains(err.Error(), "eyJ") || recorder.issued != 0 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if !ok {
			t.Fatalf("a token for a %T", obj)
		}
		issued := out.(*Object)
		if issued.Status.Token == "" || issued.Status.ExpirationTimestamp.IsZero() {
			t.Fatalf("issued nothing: %+v", issued.Status)
		}
		if c := asked.Spec.ContextObject; c != nil && (c.UID != "uid-of-account" || c.Name != "account" || c.Namespace != "ns") {
			t.Fatalf("a token for the context %+v", c)
		}
	})
}
