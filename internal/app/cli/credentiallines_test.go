package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
)

// A proxy between here and the provider can't write lines to the terminal by the names in its certificate.
func TestAnotherCertificateForgesNoLines(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{namedCertificate(t, "x.example.com\nhint: run forged\x1b[2J")}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()

	t.Setenv("KUBERNETES_EXEC_INFO", `{"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":true}}`)
	var out, errOut bytes.Buffer
	root := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, cli.Options{})
	issuer := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	code := cli.Run(t.Context(), root, []string{"credential", "oidc", "--issuer", issuer, "--client-id", "c", "--cache-folder", t.TempDir() + "/cache"})
	if code != 3 || !strings.Contains(errOut.String(), "run forged") {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
	for line := range strings.Lines(errOut.String()) {
		if strings.HasPrefix(line, "hint: run forged") {
			t.Errorf("a line is forged:\n%s", errOut.String())
		}
	}
}

func namedCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
