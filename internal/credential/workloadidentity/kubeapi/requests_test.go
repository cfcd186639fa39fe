package kubeapi

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

// server is an API server that answers each request alike, and keeps the last one.
type server struct {
	*httptest.Server
	code                int
	answer              any
	method, path, token string
	body                map[string]any
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.method, s.path, s.token, s.body = r.Method, r.URL.Path, r.Header.Get("Authorization"), nil
	_ = json.NewDecoder(r.Body).Decode(&s.body) // a GET has none
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Warning", `299 - "shortened"`)
	w.WriteHeader(s.code)
	_ = json.NewEncoder(w).Encode(s.answer) // the test's own connection
}

type terminal struct{ text string }

func (t *terminal) Notice(format string, args ...any) { t.text += fmt.Sprintf(format, args...) }
func (*terminal) OpenURL(string) error                { return nil }

// start serves, and returns how a pod reaches the server.
func start(t *testing.T, code int, answer any) (*server, kubeconfig.Access) {
	t.Helper()
	s := &server{code: code, answer: answer}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	folder := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, content := range map[string][]byte{"ca.crt": authority, "token": []byte("geheim"), "namespace": []byte("team")} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return s, kubeconfig.Access{Server: s.URL, Namespace: "team", Pod: folder}
}

func TestTokens(t *testing.T) {
	expires := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s, access := start(t, http.StatusCreated, map[string]any{
		"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "TokenRequest", "status": map[string]any{"token": "t", "expirationTimestamp": expires},
	})
	screen := &terminal{}
	api, err := Tokens(access, credential.Request{Terminal: screen})
	testkit.Must(t, err)
	got, err := api.CreateToken(t.Context(), "team", "deployer", workloadidentity.TokenRequest{
		Duration: time.Hour, Object: &workloadidentity.Object{APIVersion: "v1", Kind: "ServiceAccount", Name: "robot"}, UID: "u",
	})
	if err != nil || got.Token.Reveal() != "t" || !got.Expires.Equal(expires) || screen.text != "Warning: shortened" {
		t.Errorf("%q until %s, %q, %v", got.Token.Reveal(), got.Expires, screen.text, err)
	}
	if s.method != http.MethodPost || s.path != "/apis/authentication.gardener.cloud/v1alpha1/namespaces/team/workloadidentities/deployer/token" || s.token != "Bearer geheim" {
		t.Errorf("%s %s as %s", s.method, s.path, s.token)
	}
	want := map[string]any{"duration": "1h0m0s", "contextObject": map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "name": "robot", "namespace": "team", "uid": "u"}}
	if diff := cmp.Diff(want, s.body["spec"]); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	s.code, s.answer = http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"uid": "uid-1"}}
	if uid, err := api.UID(t.Context(), "team", workloadidentity.Object{Resource: "serviceaccounts", Name: "robot"}); err != nil || uid != "uid-1" || s.path != "/api/v1/namespaces/team/serviceaccounts/robot" {
		t.Errorf("%s of %s, %v", uid, s.path, err)
	}
}

func TestSigningRequests(t *testing.T) {
	conditions := func(all ...certificatesv1.CertificateSigningRequestCondition) certificatesv1.CertificateSigningRequest {
		return certificatesv1.CertificateSigningRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
			Status:   certificatesv1.CertificateSigningRequestStatus{Conditions: all, Certificate: []byte("c")},
		}
	}
	s, access := start(t, http.StatusCreated, conditions(certificatesv1.CertificateSigningRequestCondition{Type: "Approved", Status: "True"},
		certificatesv1.CertificateSigningRequestCondition{Type: "Denied", Status: "Unknown"}, certificatesv1.CertificateSigningRequestCondition{Type: "Failed", Status: "True", Reason: "R", Message: "m"}))
	api, err := Certificates(access, credential.Request{Terminal: &terminal{}})
	testkit.Must(t, err)
	got, err := api.Create(t.Context(), clientcertificate.SigningRequest{Name: "jane", CSR: []byte("csr"), Signer: "example.com/s", Usages: []string{"client auth"}, Duration: time.Hour})
	want := clientcertificate.Progress{Certificate: []byte("c"), Approved: true, Failed: &clientcertificate.Verdict{Reason: "R", Message: "m"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	spec, _ := s.body["spec"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"request": "Y3Ny", "signerName": "example.com/s", "usages": []any{"client auth"}, "expirationSeconds": 3600.0}, spec); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	status := func(code int32, reason metav1.StatusReason, name string) metav1.Status {
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Details: &metav1.StatusDetails{Name: name}}
	}
	s.code, s.answer = http.StatusConflict, status(409, metav1.StatusReasonAlreadyExists, "jane")
	if _, err := api.Create(t.Context(), clientcertificate.SigningRequest{Name: "jane"}); !errors.Is(err, clientcertificate.ErrExists) {
		t.Errorf("one that exists: %v", err)
	}
	s.code, s.answer = http.StatusNotFound, status(404, metav1.StatusReasonNotFound, "jane")
	if _, err := api.Get(t.Context(), "jane"); !errors.Is(err, clientcertificate.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}

// A refusal has advice, an outage does not count as one.
func TestErrorsOfTheAPI(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		message string
		refused bool
		want    string
	}{
		"credentials": {http.StatusUnauthorized, "Unauthorized", true, "the credentials of the service account of the pod are missing, wrong or expired"},
		"rights":      {http.StatusForbidden, "no", true, `needs the verb "create" on "workloadidentities/token.authentication.gardener.cloud" in namespace "team"`},
		"an object":   {http.StatusNotFound, "not found", true, "kubectl get workloadidentities -n team"},
		"an API":      {http.StatusNotFound, "the server could not find the requested resource", true, "this cluster does not serve workloadidentities.authentication.gardener.cloud"},
		"a conflict":  {http.StatusConflict, "other", true, "it was deleted or created anew meanwhile"},
		"a value":     {http.StatusUnprocessableEntity, "spec.duration", true, "spec.duration: correct what is named"},
		"an outage":   {http.StatusServiceUnavailable, "no signing key", false, "cannot answer (503): no signing key"},
		"too many":    {http.StatusTooManyRequests, "slow down", false, "cannot answer (429)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, access := start(t, test.code, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(test.code), Message: test.message, Details: &metav1.StatusDetails{Name: "deployer"},
			})
			api, err := Tokens(access, credential.Request{Terminal: &terminal{}})
			testkit.Must(t, err)
			_, err = api.CreateToken(t.Context(), "team", "deployer", workloadidentity.TokenRequest{})
			if errors.Is(err, credential.ErrRefused) != test.refused || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("refused %t, %v, want %q", errors.Is(err, credential.ErrRefused), err, test.want)
			}
		})
	}
}

// A server that is not the cluster's gets no credentials.
func TestServersThatAreNotTrusted(t *testing.T) {
	s, access := start(t, http.StatusOK, nil)
	plain := access
	plain.Server = "http://127.0.0.1:1"
	if _, err := Tokens(plain, credential.Request{Terminal: &terminal{}}); err == nil || !strings.Contains(err.Error(), "is not https") {
		t.Errorf("without TLS: %v", err)
	}
	_, other := start(t, http.StatusOK, nil)
	other.Server = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	api := testkit.Need(Tokens(other, credential.Request{Terminal: &terminal{}}))(t)
	if _, err := api.UID(t.Context(), "team", workloadidentity.Object{Resource: "pods", Name: "p"}); err == nil || !strings.Contains(err.Error(), "its certificate must be of the certificate-authority") || s.path != "" {
		t.Errorf("another name: %v, request %q", err, s.path)
	}
}
