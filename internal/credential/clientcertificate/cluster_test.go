package clientcertificate_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeapi"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

const collection = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// cluster is an API server with a signer, a clock, and what happens at which time.
type cluster struct {
	t      *testing.T
	server *httptest.Server
	ca     *testkit.Certificate

	mu       sync.Mutex
	now      time.Time
	events   []event
	pauses   int
	requests map[string]*certificatesv1.CertificateSigningRequest
	created  []string
	asked    int
	// failure is what every request gets.
	failure *metav1.Status
	// idle: nothing that is approved gets signed.
	idle bool
	// change changes what is signed.
	change func(*x509.Certificate)
	// answer replaces what is signed.
	answer []byte
}

type event struct {
	at time.Time
	do func()
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, now: noon, requests: map[string]*certificatesv1.CertificateSigningRequest{}}
	c.ca = testkit.NewCertificate(t, x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(10000 * time.Hour), IsCA: true,
	}, nil)
	c.server = httptest.NewTLSServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			c.t.Error(err)
		}
	}
	fail := func(status metav1.Status) {
		status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
		answer(int(status.Code), status)
	}
	refuse := func(err *apierrors.StatusError) { fail(err.ErrStatus) }
	resource := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	name := strings.TrimPrefix(r.URL.Path, collection+"/")
	switch {
	case c.failure != nil:
		fail(*c.failure)
	case r.Header.Get("Authorization") != "Bearer geheim":
		refuse(apierrors.NewUnauthorized("Unauthorized"))
	case r.Method == http.MethodPost && r.URL.Path == collection:
		var request certificatesv1.CertificateSigningRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			c.t.Error(err)
		}
		if c.requests[request.Name] != nil {
			refuse(apierrors.NewAlreadyExists(resource, request.Name))
			return
		}
		csr := c.parse(&request)
		if slices.Contains(csr.Subject.Organization, "system:masters") {
			refuse(apierrors.NewForbidden(resource, request.Name, fmt.Errorf("use of %s signer with system:masters group is not allowed", request.Spec.SignerName)))
			return
		}
		if s := request.Spec.ExpirationSeconds; s != nil && *s < 600 || len(request.Spec.Usages) == 0 {
			c.t.Errorf("request that the API would not take: %+v", request.Spec)
		}
		request.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
		c.requests[request.Name] = &request
		c.created = append(c.created, request.Name)
		answer(http.StatusCreated, request)
	case r.Method == http.MethodGet && c.requests[name] != nil:
		answer(http.StatusOK, c.requests[name])
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, collection+"/"):
		refuse(apierrors.NewNotFound(resource, name))
	default:
		c.t.Errorf("unexpected %s %s", r.Method, r.URL)
		refuse(apierrors.NewNotFound(resource, ""))
	}
}

func (c *cluster) parse(request *certificatesv1.CertificateSigningRequest) *x509.CertificateRequest {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		c.t.Errorf("no request in PEM: %s", request.Spec.Request)
		return &x509.CertificateRequest{}
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		c.t.Error(err)
		return &x509.CertificateRequest{}
	}
	return csr
}

// at schedules an event at a time after now. It runs when a source pauses until then.
func (c *cluster) at(after time.Duration, do func()) {
	c.events = append(c.events, event{at: c.now.Add(after), do: do})
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *cluster) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	due := []func(){}
	c.events = slices.DeleteFunc(c.events, func(e event) bool {
		if e.at.After(c.now) {
			return false
		}
		due = append(due, e.do)
		return true
	})
	c.mu.Unlock()
	for _, do := range due {
		do()
	}
}

func (c *cluster) pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 || d > 10*time.Second {
		c.t.Errorf("pauses for %s", d)
	}
	if c.pauses++; c.pauses > 10000 {
		c.t.Fatal("waits without end")
	}
	c.advance(d)
	return nil
}

// decide sets a condition of the only request that is undecided.
func (c *cluster) decide(condition certificatesv1.RequestConditionType, reason, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		if len(request.Status.Conditions) == 0 {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
			if condition == certificatesv1.CertificateApproved && !c.idle {
				c.sign(request)
			}
			return
		}
	}
	c.t.Error("no request to decide on")
}

func (c *cluster) approve() { c.decide(certificatesv1.CertificateApproved, "Reviewed", "by a person") }

func (c *cluster) sign(request *certificatesv1.CertificateSigningRequest) {
	if request.Status.Certificate = c.answer; c.answer != nil {
		return
	}
	csr := c.parse(request)
	life := 24 * time.Hour
	if s := request.Spec.ExpirationSeconds; s != nil {
		life = time.Duration(*s) * time.Second
	}
	template := x509.Certificate{
		Subject: csr.Subject, NotBefore: c.now.Add(-5 * time.Minute), NotAfter: c.now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, PublicKey: csr.PublicKey,
	}
	if c.change != nil {
		c.change(&template)
	}
	signed, err := testkit.Certify(template, c.ca)
	if err != nil {
		c.t.Error(err)
		return
	}
	request.Status.Certificate = signed.PEM()
}

// access is the kubeconfig of a user with the right to request.
func (c *cluster) access() kubeconfig.Access {
	c.t.Helper()
	ca, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw}))
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %s}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "asker"}}],
		"users": [{"name": "asker", "user": {"token": "geheim"}}]}`, c.server.URL, ca)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	access, err := kubeconfig.Choice{Path: path, Environment: func(string) string { return "" }}.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return access
}

func (c *cluster) source(settings clientcertificate.Settings) *clientcertificate.Source {
	c.t.Helper()
	settings.Now, settings.Pause = c.clock, c.pause
	if settings.User == "" {
		settings.User = "jane"
	}
	source, err := clientcertificate.New(settings, c.access(), kubeapi.Certificates)
	if err != nil {
		c.t.Fatal(err)
	}
	return source
}

// screen is a Terminal.
type screen struct{ text bytes.Buffer }

func (s *screen) Notice(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }
func (s *screen) OpenURL(string) error              { return nil }

// client requests a certificate repeatedly, and keeps the state.
type client struct {
	screen screen
	entry  *credential.Entry
	kept   []json.RawMessage
	info   credential.ExecInfo
	// refused: the server did not take what is kept.
	refused bool
}

func (k *client) obtain(t *testing.T, source *clientcertificate.Source) (credential.Credential, error) {
	k.screen.text.Reset()
	keep := func(state json.RawMessage) error {
		k.kept = append(k.kept, state)
		if k.entry == nil {
			k.entry = &credential.Entry{}
		}
		k.entry.State = state
		return nil
	}
	got, state, err := source.Obtain(t.Context(), credential.Request{ExecInfo: k.info, Previous: k.entry, Refused: k.refused, Terminal: &k.screen, Keep: keep})
	if err == nil {
		k.entry = &credential.Entry{Credential: got, State: state}
	} else if state != nil && k.entry != nil {
		k.entry.State = state
	}
	if k.entry != nil && string(k.entry.State) == "null" {
		k.entry.State = nil
	}
	return got, err
}
