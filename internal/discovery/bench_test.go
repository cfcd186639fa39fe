package discovery

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/test/testkit"
)

// bare is the baseline of the handler: the same bytes, without decisions and headers.
func bare(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
}

func benchmarked(b *testing.B) map[string]http.Handler {
	b.Helper()
	documents := exampleDocuments(b)
	handler := NewHandler(Settings{Issuer: testIssuer, Recorder: NewRecorder(prometheus.NewRegistry(), time.Now)})
	testkit.Must(b, handler.Publish(documents))
	return map[string]http.Handler{"credence": handler, "bare": bare(documents.JWKS())}
}

// sink is a response writer that costs nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func BenchmarkHandler(b *testing.B) {
	for name, handler := range benchmarked(b) {
		b.Run(name, func(b *testing.B) {
			w, request := &sink{header: http.Header{}}, httptest.NewRequest(http.MethodGet, jwksPath, nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				handler.ServeHTTP(w, request)
			}
		})
	}
}

func BenchmarkNotModified(b *testing.B) {
	handler := benchmarked(b)["credence"]
	w, request := &sink{header: http.Header{}}, httptest.NewRequest(http.MethodGet, jwksPath, nil)
	request.Header.Set("If-None-Match", `"x", `+exampleDocuments(b).JWKSETag())
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		handler.ServeHTTP(w, request)
	}
}

// BenchmarkTLS requests over kept connections, HTTP/1.1 and 16 at a time.
func BenchmarkTLS(b *testing.B) {
	for name, handler := range benchmarked(b) {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewUnstartedServer(handler)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			defer server.Close()
			client := server.Client()
			transport := client.Transport.(*http.Transport)
			transport.MaxIdleConnsPerHost = 16
			transport.TLSClientConfig.MinVersion = tls.VersionTLS13
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					response, err := client.Get(server.URL + jwksPath)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			})
		})
	}
}

func BenchmarkParse(b *testing.B) {
	documents := exampleDocuments(b)
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, testkit.Err(Parse(testIssuer, documents.configuration, documents.jwks)))
	}
}
