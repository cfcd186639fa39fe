package apiserver

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"github.com/credence-id/credence/test/testkit"
	"k8s.io/apimachinery/pkg/api/meta"
)

// A request for a token has metadata, which admission selects by, whether its body has its kind or not.
func TestDecodedTokenRequestsHaveMetadata(t *testing.T) {
	scheme := testkit.Need(NewScheme())(t)
	negotiation := newNegotiation(scheme, NewCodecs(scheme))
	kind := v1alpha1.SchemeGroupVersion.WithKind("TokenRequest")
	for _, body := range []string{
		`{"metadata":{"labels":{"a":"b"}}}`,
		`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","metadata":{"labels":{"a":"b"}}}`,
		"metadata: {labels: {a: b}}",
	} {
		decoder := negotiation.DecoderToVersion(negotiation.SupportedMediaTypes()[0].Serializer, kind.GroupVersion())
		object, _, err := decoder.Decode([]byte(body), &kind, (*tokenrequest.REST)(nil).New())
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if found, err := meta.Accessor(object); err != nil || found.GetLabels()["a"] != "b" {
			t.Errorf("%s: metadata %v, %v", body, found, err)
		}
	}
}

// An error of decoding repeats little of the body: answers and two audit logs have it.
func TestErrorsOfDecodingAreShort(t *testing.T) {
	scheme := testkit.Need(NewScheme())(t)
	negotiation := newNegotiation(scheme, NewCodecs(scheme))
	decoder := negotiation.DecoderToVersion(negotiation.SupportedMediaTypes()[0].Serializer, v1alpha1.SchemeGroupVersion)
	long := strings.Repeat("1", 500<<10)
	for name, body := range map[string]string{"a duration": `{"spec":{"duration":"` + long + `"}}`, "a field": `{"` + long + `":1}`} {
		kind := v1alpha1.SchemeGroupVersion.WithKind("TokenRequest")
		if _, _, err := decoder.Decode([]byte(body), &kind, (*tokenrequest.REST)(nil).New()); err == nil || len(err.Error()) > 2*maxMessage {
			t.Errorf("%s: %.100v, want a short error", name, err)
		}
	}
}
