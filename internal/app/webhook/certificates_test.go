package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

func must(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// certifier signs certificates, and is written to dir/ca.crt.
type certifier struct {
	dir  string
	own  *testkit.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *certifier {
	t.Helper()
	a := &certifier{dir: t.TempDir(), own: testkit.NewCertificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true}, nil)}
	a.pool = a.own.Pool()
	a.own.Write(t, a.dir, "ca")
	return a
}

func (a *certifier) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes dir/NAME.crt and dir/NAME.key, for both ends of a connection to 127.0.0.1.
func (a *certifier) issue(t testing.TB, name string) tls.Certificate {
	t.Helper()
	issued := testkit.NewCertificate(t, x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.own)
	issued.Write(t, a.dir, name)
	return issued.TLS()
}
