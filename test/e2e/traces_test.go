package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

// The services of spans.
const (
	kubeAPIServer = "apiserver"
	ourAPIServer  = "credence-apiserver"
	ourWebhook    = "credence-webhook"
)

// The trace that kube-apiserver begins goes on in the API server of Credence and in the webhook. No span holds a secret, and no user
// decides what is traced.
func TestPlaneTraces(t *testing.T) {
	withPlane(t)
	collector, address := startCollector(t)
	config := func(name, rate string) string {
		path := filepath.Join(t.TempDir(), name)
		content := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: " + address + "\n" + rate
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	all, joined := config("all.yaml", "samplingRatePerMillion: 1000000\n"), config("joined.yaml", "")
	p := newPlane(t, "--arg", "devcluster=--apiserver-arg=--tracing-config-file="+all,
		"--arg", "apiserver=--tracing-config-file="+joined, "--arg", "webhook=--tracing-config-file="+joined,
		"--arg", "webhook=--client-ca-file=", "--arg", "webhook=--client-name=")
	namespace := p.accountWithIdentities(t, "banana")
	p.awsIdentity(t, namespace, "last", "last")
	caller := rest.AnonymousClientConfig(p.config(t))
	caller.BearerToken = p.accountToken(t, namespace, "caller")
	p.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "caller"},
		rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}})
	path := tokenPath(namespace, "banana")
	eventually(t, func() error { // the right is known
		return do(t, caller, "POST", path, "application/json", tokenRequest("{}")).is(201)
	})

	// Users name traces, of kube-apiserver and past it.
	const named = "0af7651916cd43dd8448eb211c80319c"
	direct := rest.AnonymousClientConfig(p.direct(t))
	direct.BearerToken = caller.BearerToken
	for _, config := range []*rest.Config{caller, direct} {
		client := need(rest.HTTPClientFor(config))(t)
		request := need(http.NewRequestWithContext(t.Context(), "POST", config.Host+path, strings.NewReader(tokenRequest("{}"))))(t)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Traceparent", "00-"+named+"-b7ad6b7169203331-01")
		response := need(client.Do(request))(t)
		_ = response.Body.Close()
		if response.StatusCode != 201 {
			t.Fatalf("request token: %s", response.Status)
		}
	}

	issued := token(t, caller, namespace, "banana", "{}").Status.Token
	_, delivered := p.podWithToken(t, namespace, "banana")
	// Spans of a process are sent in their order: those of the requests before have arrived with these. A busy process may drop some.
	again := func() error {
		if got := do(t, caller, "POST", tokenPath(namespace, "last"), "application/json", tokenRequest("{}")); got.Code != 201 {
			return fmt.Errorf("request token: %d %s", got.Code, got.Body)
		}
		if _, err := p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), dryRun); err != nil {
			return err
		}
		return errOf(p.client(t).CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret("traced", namespace, "banana"), dryRun))
	}
	collector.await(t, again, ourAPIServer, "POST "+tokenPath(namespace, "last"), "")
	collector.await(t, again, ourWebhook, "/default-pods", "POST /api/v1/namespaces/"+namespace+"/pods")
	collector.await(t, again, ourWebhook, "/secrets", "")

	collector.mu.Lock()
	defer collector.mu.Unlock()
	secret := strings.Split(strings.TrimPrefix(p.reviewURL(t, "default-pods.identity.credence.dev"), "https://"), "/")[1]
	for _, span := range collector.spans {
		text := span.String()
		if span.service != kubeAPIServer && fmt.Sprintf("%x", span.TraceId) == named {
			t.Errorf("a user has named the trace of %s", text)
		}
		if span.service == ourWebhook && strings.Contains(text, secret) {
			t.Errorf("the secret path of reviews is in %s", text)
		}
		for what, secret := range map[string]string{"the bearer token": caller.BearerToken, "the issued token": issued} {
			signature := secret[strings.LastIndex(secret, ".")+1:]
			if strings.Contains(text, signature) || strings.Contains(text, secret[:len(secret)-len(signature)]) {
				t.Errorf("%s is in %s", what, text)
			}
		}
		if strings.Contains(text, delivered.ID) {
			t.Errorf("the ID of a delivered token is in %s", text)
		}
	}
}

// received is a span, and the program that has sent it.
type received struct {
	*tracev1.Span
	service string
}

// attribute returns an attribute's text, or "".
func (r received) attribute(key string) string {
	for _, attribute := range r.Attributes {
		if attribute.Key == key {
			return attribute.Value.GetStringValue()
		}
	}
	return ""
}

// request is the method and path of a span of a request.
func (r received) request() string {
	return r.attribute("http.request.method") + " " + r.attribute("url.path")
}

// collector is an OpenTelemetry collector that keeps spans.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []received
}

func startCollector(t *testing.T) (*collector, string) {
	t.Helper()
	c, server, listener := &collector{}, grpc.NewServer(), testkit.Listen(t)
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)
	return c, listener.Addr().String()
}

// Export implements the service.
func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		service := ""
		for _, attribute := range resource.Resource.Attributes {
			if attribute.Key == "service.name" {
				service = attribute.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans = append(c.spans, received{span, service})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// await waits for a span of a request to a service whose parent is one of kube-apiserver in the same trace; within it, for a request to
// kube-apiserver that led to it, unless that is "". The requests are made again and again.
func (c *collector) await(t *testing.T, again func() error, service, request, cause string) {
	t.Helper()
	eventually(t, func() error {
		if err := again(); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		found := errors.New("none")
		for _, span := range c.spans {
			if span.service != service || !strings.HasSuffix(span.request(), request) {
				continue
			}
			parent, caused := false, cause == ""
			for _, other := range c.spans {
				if other.service == kubeAPIServer && bytes.Equal(other.TraceId, span.TraceId) {
					parent = parent || bytes.Equal(other.SpanId, span.ParentSpanId)
					caused = caused || other.request() == cause
				}
			}
			if parent && caused {
				return nil
			}
			found = fmt.Errorf("one without its parent or cause: %v", span)
		}
		return fmt.Errorf("no span of %s, %q, in a trace of kube-apiserver: %w; %d spans in all", service, request, found, len(c.spans))
	})
}
