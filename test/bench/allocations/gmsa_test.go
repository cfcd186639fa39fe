package allocations

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/gmsa"
)

const credspec = `{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{"DnsName":"corp.example.com"}}`

// specs has every GMSACredentialSpec.
type specs struct{}

func (specs) Known(string) (gmsa.Spec, bool) {
	return gmsa.Spec{Exists: true, Contents: credspec}, true
}

func (specs) Read(_ context.Context, name string) (gmsa.Spec, error) {
	return gmsa.Spec{}, fmt.Errorf("%s is known and was read all the same", name)
}

// allows everything.
type allows struct{}

func (allows) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
}

// reviews are of a gMSA pod of one container, before its contents are filled in, and after.
func reviews() []operation {
	handler := webhook.New(webhook.Needs{CredentialSpecs: specs{}, Authorizer: allows{}, Log: slog.New(slog.DiscardHandler), Now: now})
	ask := func(path, contents, want string) func() error {
		body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",
			"resource":{"version":"v1","resource":"pods"},"namespace":"shop","operation":"CREATE","userInfo":{"username":"jane","groups":["system:authenticated"]},
			"object":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"iis-"},"spec":{"serviceAccountName":"cart","os":{"name":"windows"},
			"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"` + contents + `}},"containers":[{"name":"iis","image":"iis"}]}}}}`)
		w := &answer{sink: sink{header: http.Header{}}}
		reader := bytes.NewReader(body)
		request := httptest.NewRequest(http.MethodPost, path+"?timeout=10s", nil)
		request.Header.Set("Content-Type", "application/json")
		return func() error {
			clear(w.header)
			w.admitted = false
			reader.Reset(body)
			request.Body = io.NopCloser(reader)
			w.want = []byte(want)
			if handler.ServeHTTP(w, request); !w.admitted {
				return fmt.Errorf("%s did not answer %s", path, want)
			}
			return nil
		}
	}
	filledIn := `,"gmsaCredentialSpec":"` + strings.ReplaceAll(credspec, `"`, `\"`) + `"`
	return []operation{
		{"admission: gMSA pod, filled in", ask(webhook.MutatePath, "", `"patch":`)},
		{"admission: gMSA pod, authorized", ask(webhook.ValidatePath, filledIn, `"allowed":true`)},
	}
}

// answer looks into what is written, once it is all there, and keeps nothing of it.
type answer struct {
	sink
	want     []byte
	admitted bool
}

func (a *answer) Write(p []byte) (int, error) {
	a.admitted = bytes.Contains(p, a.want)
	return len(p), nil
}
