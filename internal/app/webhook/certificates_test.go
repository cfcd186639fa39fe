package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certifier signs certificates, and is written to dir/ca.crt.
type certifier struct {
	dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pool        *x509.CertPool
}

func newAuthority(t testing.TB) *certifier {
	t.Helper()
	a := &certifier{dir: t.TempDir(), pool: x509.NewCertPool()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	must(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	must(t, err)
	a.pool.AddCert(a.certificate)
	must(t, os.WriteFile(a.file("ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

func (a *certifier) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes dir/NAME.crt and dir/NAME.key, for both ends of a connection to 127.0.0.1.
func (a *certifier) issue(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	certificate, private := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	must(t, os.WriteFile(a.file(name+".crt"), certificate, 0o600))
	must(t, os.WriteFile(a.file(name+".key"), private, 0o600))
	pair, err := tls.X509KeyPair(certificate, private)
	must(t, err)
	return pair
}
