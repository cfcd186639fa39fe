package clientcertificate

import (
	"context"
	"errors"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// Connect opens the way to the cluster, for one request.
type Connect func(kubeconfig.Access, credential.Request) (API, error)

// Errors of an API that are not a matter of rights or outages.
var (
	ErrExists   = errors.New("a request of this name exists already")
	ErrNotFound = errors.New("the request does not exist")
)

// API is the part of a cluster's API that takes requests for certificates. Its errors are ErrExists, ErrNotFound,
// credential.ErrRefused, or an outage.
type API interface {
	Create(ctx context.Context, request SigningRequest) (Progress, error)
	Get(ctx context.Context, name string) (Progress, error)
}

// SigningRequest is a CertificateSigningRequest as it is created.
type SigningRequest struct {
	Name     string
	CSR      []byte // PEM
	Signer   string
	Usages   []string
	Duration time.Duration // 0: the signer's default
}

// Progress is a CertificateSigningRequest as it is now.
type Progress struct {
	CSR    []byte // PEM
	Signer string
	// Denied and Failed are nil, or the reason of the decision.
	Denied, Failed *Verdict
	Approved       bool
	// Certificate is empty, or a chain in PEM.
	Certificate []byte
}

// Verdict is a condition of a request, with text that is safe for a terminal.
type Verdict struct{ Reason, Message string }

func (v Verdict) String() string {
	switch {
	case v.Reason == "" && v.Message == "":
		return "without a reason"
	case v.Message == "":
		return v.Reason
	case v.Reason == "":
		return v.Message
	}
	return v.Reason + ": " + v.Message
}
