package credential_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/test/testkit"
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
	return testkit.NewCertificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "x"}, DNSNames: []string{name}}, nil).TLS()
}
