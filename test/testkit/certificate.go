package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate is a certificate with its key.
type Certificate struct {
	*x509.Certificate
	Key *ecdsa.PrivateKey
}

// NewCertificate is Certify for a test.
func NewCertificate(t testing.TB, template x509.Certificate, by *Certificate) *Certificate {
	t.Helper()
	certificate, err := Certify(template, by)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Certify signs a template by another certificate, or by itself where that is nil. A template without times is
// valid for an hour before and after now; one of an authority may sign certificates; one with a public key, such as that of
// a request, has no Key here.
func Certify(template x509.Certificate, by *Certificate) (*Certificate, error) {
	var key *ecdsa.PrivateKey
	if template.PublicKey == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		template.PublicKey = key.Public()
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(1)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	if template.IsCA && template.KeyUsage == 0 {
		template.KeyUsage = x509.KeyUsageCertSign
	}
	template.BasicConstraintsValid = true
	parent := &Certificate{&template, key}
	if by != nil {
		parent = by
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent.Certificate, template.PublicKey, parent.Key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &Certificate{certificate, key}, err
}

// PEM is the certificate without its key.
func (c *Certificate) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// KeyPEM is the key, as PKCS #8.
func (c *Certificate) KeyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(c.Key)
	if err != nil {
		panic(err) // keys of P-256 always have this form
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TLS is the certificate as servers and clients take it.
func (c *Certificate) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: c.Key, Leaf: c.Certificate}
}

// Pool has the certificate as its authority.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Certificate)
	return pool
}

// Write writes name.crt and name.key into a folder.
func (c *Certificate) Write(t testing.TB, folder, name string) {
	t.Helper()
	for end, text := range map[string][]byte{".crt": c.PEM(), ".key": c.KeyPEM()} {
		if err := os.WriteFile(filepath.Join(folder, name+end), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
