package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/sdk/plane"
	"github.com/credence-id/credence/test/sdk/sts"
	"github.com/credence-id/credence/test/testkit"
)

const (
	issuerHost = "identity.example.com"
	issuerURL  = "https://" + issuerHost + "/shop"
)

// world is the clouds, set up to trust one identity each, and the plane whose tokens they trust.
type world struct {
	plane *plane.Plane
	sts   *sts.Server
	// authority is the file with the only certificate that is trusted, by client too; certificate is that of all servers.
	authority   string
	certificate *testkit.Certificate
	// client is that of the clouds, for documents of issuers: pool is the authorities that it trusts.
	client *http.Client
	pool   *x509.CertPool
	// instead are handlers of hosts in place of the clouds', of type http.HandlerFunc.
	instead sync.Map
}

// newWorld serves the clouds and the plane under their own names, on port 443.
func newWorld(t *testing.T) *world {
	t.Helper()
	requireIsolation(t)
	tokens := testkit.Need(plane.New(issuerURL))(t)
	return newClouds(t, tokens, func(c cloud) sts.Trust {
		subject := testkit.Need(identity.NewSubject(workloadIdentity(c.name).Namespace, workloadIdentity(c.name).Name, workloadIdentity(c.name).UID))(t)
		return sts.Trust{Issuer: issuerURL, Audience: c.audience, Subject: string(subject)}
	})
}

// newClouds serves the clouds with their trust, and the documents of a plane, if it is not nil.
func newClouds(t *testing.T, tokens *plane.Plane, trust func(cloud) sts.Trust) *world {
	t.Helper()
	w := &world{plane: tokens, authority: filepath.Join(t.TempDir(), "ca.crt")}
	w.certificate, w.pool = serving(t, w.authority, append(sts.New(sts.Settings{}).Hosts(), issuerHost, storeHost))
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.pool}, DisableKeepAlives: true}}
	w.sts = sts.New(sts.Settings{
		Client:     w.client,
		ShortLived: true,
		AWS:        []sts.AWSRole{{ARN: awsRole, Trust: trust(awsCloud())}, {ARN: awsRoleOfPython, Trust: trust(awsCloud()), Short: 9 * time.Minute}},
		Azure:      []sts.AzureApplication{{Tenant: azureTenant, ClientID: azureClient, Trust: trust(azureCloud())}},
		Google:     []sts.GoogleProvider{{Name: googleProvider, Trust: trust(googleCloud()), ServiceAccounts: []string{googleAccount}}},
		Alibaba:    []sts.AlibabaRole{{ARN: alibabaRole, ProviderARN: alibabaProvider, Trust: trust(alibabaCloud())}},
	})
	listener := testkit.Need(tls.Listen("tcp", "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{w.certificate.TLS()}}))(t)
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Host == issuerHost && tokens != nil {
			tokens.Documents().ServeHTTP(rw, r)
			return
		}
		if handler, found := w.instead.Load(r.Host); found {
			handler.(http.HandlerFunc)(rw, r)
			return
		}
		w.sts.ServeHTTP(rw, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return w
}

// workloadIdentity is the one that a cloud trusts.
func workloadIdentity(cloud string) issuer.Identity {
	return issuer.Identity{Namespace: "shop", Name: "cart-" + cloud, UID: "12b580fe-1f74-4195-852b-e1a74b03496a"}
}

// request is that for a token which the cloud accepts.
func request(c cloud) issuer.Request {
	return issuer.Request{
		Identity:        workloadIdentity(c.name),
		Audiences:       []string{c.audience},
		TargetAlgorithm: targets.Algorithm(c.name),
		Context:         &issuer.Context{ServiceAccount: &issuer.ServiceAccount{Namespace: "shop", Name: "cart", UID: "54d09554-6a68-4f46-a23a-e3592385d820"}},
	}
}

// issue signs a token now.
func (w *world) issue(t *testing.T, request issuer.Request) plane.Issued {
	t.Helper()
	return testkit.Need(w.plane.Issue(request, time.Now()))(t)
}

// serving returns a certificate for names, and writes the one that signed it to a file.
func serving(t *testing.T, file string, names []string) (*testkit.Certificate, *x509.CertPool) {
	t.Helper()
	authority := testkit.NewCertificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true}, nil)
	testkit.Must(t, os.WriteFile(file, authority.PEM(), 0o644))
	return testkit.NewCertificate(t, x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority), authority.Pool()
}
