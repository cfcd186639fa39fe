package clitest

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/test/testkit"
)

const signingRequestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// SigningFake is the part of a cluster that takes requests for certificates, with a person who decides about each: by the user's name.
// They approve jane's after it was read once, deny mallory's, and never decide others. No user may make one for root.
// It writes the names of the requests to a file.
type SigningFake struct {
	mu       sync.Mutex
	file     string
	requests map[string]*certificatesv1.CertificateSigningRequest
}

// NewSigningFake returns one that writes the names of its requests to a file.
func NewSigningFake(file string) *SigningFake {
	return &SigningFake{file: file, requests: map[string]*certificatesv1.CertificateSigningRequest{}}
}

// ServeHTTP implements http.Handler.
func (f *SigningFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodPost {
		f.create(w, r)
		return
	}
	request := f.requests[path.Base(r.URL.Path)]
	if request == nil {
		Refuse(w, metav1.Status{Code: 404, Reason: "NotFound", Message: "not found", Details: &metav1.StatusDetails{Kind: "certificatesigningrequests", Name: path.Base(r.URL.Path)}})
		return
	}
	f.decide(request)
	Answer(w, http.StatusOK, request)
}

// Made is how many requests there are.
func (f *SigningFake) Made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

func (f *SigningFake) create(w http.ResponseWriter, r *http.Request) {
	var request certificatesv1.CertificateSigningRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		panic(err)
	}
	if parsed := parseRequest(request.Spec.Request); parsed.Subject.CommonName == "root" {
		Refuse(w, metav1.Status{Code: 403, Reason: "Forbidden", Message: "you may not"})
		return
	}
	f.requests[request.Name] = &request
	var names strings.Builder
	for name := range f.requests {
		fmt.Fprintln(&names, name)
	}
	if err := os.WriteFile(f.file, []byte(names.String()), 0o600); err != nil {
		panic(err)
	}
	Answer(w, http.StatusCreated, request)
}

func (f *SigningFake) decide(request *certificatesv1.CertificateSigningRequest) {
	parsed := parseRequest(request.Spec.Request)
	condition := func(kind certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
		return []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "Person", Message: "decided \x1b[2J"}}
	}
	switch parsed.Subject.CommonName {
	case "jane":
		request.Status.Conditions = condition(certificatesv1.CertificateApproved)
		request.Status.Certificate = sign(parsed)
	case "mallory":
		request.Status.Conditions = condition(certificatesv1.CertificateDenied)
	}
}

func parseRequest(text []byte) *x509.CertificateRequest {
	block, _ := pem.Decode(text)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		panic(err)
	}
	return request
}

// sign makes a certificate for an hour.
func sign(request *x509.CertificateRequest) []byte {
	authority, err := testkit.Certify(x509.Certificate{IsCA: true}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := testkit.Certify(x509.Certificate{
		Subject: request.Subject, PublicKey: request.PublicKey, NotBefore: Now().Add(-time.Minute), NotAfter: Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority)
	if err != nil {
		panic(err)
	}
	return signed.PEM()
}
