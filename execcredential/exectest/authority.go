package exectest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority issues certificates for tests.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a new key.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "exectest authority"},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Unix(1<<33, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, a.key.Public(), a.key)
	return a
}

// Issue returns a client certificate for name and its key, in PEM.
func (a *Authority) Issue(name string, notBefore, notAfter time.Time) (certificate, key string) {
	private := newKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.IssueFor(private.Public(), name, notBefore, notAfter), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// IssueFor returns a client certificate for name and a key that is elsewhere, in PEM.
func (a *Authority) IssueFor(key crypto.PublicKey, name string, notBefore, notAfter time.Time) (certificate string) {
	issued := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, key, a.key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Raw}))
}

// PEM is the certificate of the authority.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Pool has the certificate of the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Server is for a server on 127.0.0.1 that requests client certificates of this authority, and accepts clients without one.
func (a *Authority) Server() *tls.Config {
	key := newKey(a.t)
	issued := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "127.0.0.1"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Unix(0, 0),
		NotAfter:    time.Unix(1<<33, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, key.Public(), a.key)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{issued.Raw}, PrivateKey: key}},
		ClientCAs:    a.Pool(),
		ClientAuth:   tls.VerifyClientCertIfGiven,
	}
}

func (a *Authority) sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) *x509.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	issued, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return issued
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
