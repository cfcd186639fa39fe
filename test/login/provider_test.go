package login_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// provider is a certified OpenID provider that counts its requests.
type provider struct {
	*child
	issuer, caFile string
}

func theProvider(t *testing.T) *provider {
	t.Helper()
	needPrograms(t)
	return testkit.Need(sharedProvider())(t)
}

func startProvider() (*provider, error) {
	p := &provider{caFile: filepath.Join(scratch, "provider.pem")}
	keyFile := filepath.Join(scratch, "provider-key.pem")
	certificate, err := testkit.Certify(x509.Certificate{
		Subject: pkix.Name{CommonName: "login tests"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(p.caFile, certificate.PEM(), 0o600), os.WriteFile(keyFile, certificate.KeyPEM(), 0o600)); err != nil {
		return nil, err
	}
	// Not one that an outgoing connection could take while the provider is down.
	port, err := testkit.FreePorts(1)
	if err != nil {
		return nil, err
	}
	if p.child, err = startChild("node", "testdata/provider.mjs", "--key", keyFile, "--certificate", p.caFile, "--port", strconv.Itoa(port), "--controlled"); err != nil {
		return nil, err
	}
	atEnd(p.stop)
	issuer, err := p.line()
	p.issuer = strings.TrimSpace(issuer)
	return p, err
}

// counts is the number of the provider's requests, by the names of provider.mjs.
type counts map[string]int

func (p *provider) count(t *testing.T) counts {
	t.Helper()
	now := counts{}
	testkit.Must(t, p.ask(map[string]string{"do": "count"}, &now))
	return now
}

// since returns how many requests of a kind the provider got since before; "authorization" is the request of a browser at a login.
func (p *provider) since(t *testing.T, before counts, what string) int {
	t.Helper()
	return p.count(t)[what] - before[what]
}

// isDown makes the provider unreachable until the test ends, or until it is called again with false.
func (p *provider) isDown(t *testing.T, down bool) {
	t.Helper()
	do := "start"
	if down {
		do = "stop"
		t.Cleanup(func() { p.isDown(t, false) })
	}
	var done struct{}
	testkit.Must(t, p.ask(map[string]string{"do": do}, &done))
}
