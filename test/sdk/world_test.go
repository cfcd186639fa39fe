package sdk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/sdk/plane"
	"github.com/credence-id/credence/test/sdk/sts"
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
	certificate servingCertificate
	client      *http.Client
}

type servingCertificate tls.Certificate

// newWorld serves the clouds and the plane under their own names, on port 443.
func newWorld(t *testing.T) *world {
	t.Helper()
	requireIsolation(t)
	tokens, err := plane.New(issuerURL)
	if err != nil {
		t.Fatal(err)
	}
	trust := func(c cloud) sts.Trust {
		subject, err := identity.NewSubject(workloadIdentity(c.name).Namespace, workloadIdentity(c.name).Name, workloadIdentity(c.name).UID)
		if err != nil {
			t.Fatal(err)
		}
		return sts.Trust{Issuer: issuerURL, Audience: c.audience, Subject: string(subject)}
	}
	w := &world{plane: tokens, authority: filepath.Join(t.TempDir(), "ca.crt")}
	certificate, pool := serving(t, w.authority, append(sts.New(sts.Settings{}).Hosts(), issuerHost, storeHost))
	w.certificate = servingCertificate(certificate)
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	w.sts = sts.New(sts.Settings{
		Client:     w.client,
		ShortLived: true,
		AWS:        []sts.AWSRole{{ARN: awsRole, Trust: trust(awsCloud())}, {ARN: awsRoleOfPython, Trust: trust(awsCloud()), Short: 9 * time.Minute}},
		Azure:      []sts.AzureApplication{{Tenant: azureTenant, ClientID: azureClient, Trust: trust(azureCloud())}},
		Google:     []sts.GoogleProvider{{Name: googleProvider, Trust: trust(googleCloud()), ServiceAccounts: []string{googleAccount}}},
		Alibaba:    []sts.AlibabaRole{{ARN: alibabaRole, ProviderARN: alibabaProvider, Trust: trust(alibabaCloud())}},
	})
	listener, err := tls.Listen("tcp", "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Host == issuerHost {
			tokens.Documents().ServeHTTP(rw, r)
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
	issued, err := w.plane.Issue(request, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// serving returns a certificate for names, and writes the one that signed it to a file.
func serving(t *testing.T, file string, names []string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		return key
	}
	authorityKey, key := newKey(), newKey()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	check(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	check(err)
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	check(os.WriteFile(file, encoded, 0o644))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(encoded)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
