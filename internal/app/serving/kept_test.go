package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// A client that keeps connections, and can't repeat what it sends on one: the next answer is the last one, and nothing is closed before.
func TestClientsLeaveBeforeTheServerStops(t *testing.T) {
	certificate := testkit.NewCertificate(t, x509.Certificate{DNSNames: []string{"localhost"}}, nil)
	listener := testkit.Listen(t)
	server := New("test", listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}), shown{certificate.TLS()}, slog.New(slog.DiscardHandler))
	server.leave = time.Hour
	server.Patient(time.Hour).http.ReadHeaderTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Run(ctx) }()

	var posts []func() *http.Response
	for range 2 {
		conn := testkit.Need(tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: certificate.Pool(), ServerName: "localhost", NextProtos: []string{"http/1.1"}}))(t)
		defer conn.Close()
		reader := bufio.NewReader(conn)
		posts = append(posts, func() *http.Response {
			t.Helper()
			request, err := http.NewRequest(http.MethodPost, "https://localhost/", strings.NewReader("review"))
			if err == nil {
				err = request.Write(conn)
			}
			testkit.Must(t, err)
			response, err := http.ReadResponse(reader, request)
			testkit.Must(t, err)
			return response
		})
	}
	for _, post := range posts {
		if response := post(); response.Close {
			t.Error("an answer ends its connection while the server goes on")
		}
	}
	cancel()
	testkit.Eventually(t, "the server stops", server.kept.leaving.Load)
	for _, post := range posts {
		if response := post(); !response.Close || response.StatusCode != http.StatusOK {
			t.Errorf("the answer while the server stops is %d and ends the connection: %v, want 200 and true", response.StatusCode, response.Close)
		}
	}
	testkit.Expect(t, <-stopped)
}

type shown struct{ certificate tls.Certificate }

func (s shown) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &s.certificate, nil
}
