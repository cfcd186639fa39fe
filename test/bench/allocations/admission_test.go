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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
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

// plain has every service account, without identities and without a profile.
type plain struct{}

func (plain) Get(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil
}

func (plain) Profile(context.Context, string, string) (*accounts.ServiceAccountProfile, error) {
	return nil, notFound
}

func (plain) Template(context.Context, string) (*accounts.SecurityContextTemplate, error) {
	return nil, notFound
}

var notFound = apierrors.NewNotFound(accounts.Resource("serviceaccountprofiles"), "")

// reviews are of a gMSA pod of one container, before its contents are filled in, and after, and of a pod of two containers as they are
// deployed, whose account gives no identities.
func reviews() []operation {
	handler := webhook.New(webhook.Needs{
		CredentialSpecs: specs{}, ServiceAccounts: plain{}, Profiles: plain{}, Authorizer: allows{}, Log: slog.New(slog.DiscardHandler), Now: now,
	})
	ask := func(path, spec, want string) func() error {
		body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",
			"resource":{"version":"v1","resource":"pods"},"namespace":"shop","operation":"CREATE","userInfo":{"username":"jane","groups":["system:authenticated"]},
			"object":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"iis-"},"spec":{"serviceAccountName":"cart",` + spec + `}}}}`)
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
	windows := func(contents string) string {
		return `"os":{"name":"windows"},"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"` + contents + `}},"containers":[{"name":"iis","image":"iis"}]`
	}
	filledIn := `,"gmsaCredentialSpec":"` + strings.ReplaceAll(credspec, `"`, `\"`) + `"`
	const container = `"image":"registry.example.com/cart:1","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":"info"}],
		"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"}],
		"livenessProbe":{"httpGet":{"path":"/livez","port":8080,"scheme":"HTTP"},"periodSeconds":10},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080,"scheme":"HTTP"},"periodSeconds":10}}`
	deployed := `"volumes":[{"name":"data","emptyDir":{}}],"containers":[{"name":"main",` + container + `,{"name":"proxy",` + container + `],
		"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]`
	return []operation{
		{"admission: gMSA pod, filled in", ask(webhook.MutatePath, windows(""), `"patch":`)},
		{"admission: gMSA pod, authorized", ask(webhook.ValidatePath, windows(filledIn), `"allowed":true`)},
		{"admission: pod without identities", ask(webhook.PodsPath, deployed, `"allowed":true`)},
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
