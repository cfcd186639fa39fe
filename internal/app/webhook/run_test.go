package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/credence-id/credence/test/testkit"
)

// api is a Kubernetes API of one service account and one identity. Requests are counted by method and path.
type api struct{ allowed bool }

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v1/namespaces/orchard":
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"orchard"}}`)
	case "GET /api/v1/namespaces/orchard/serviceaccounts/app":
		fmt.Fprint(w, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"app","namespace":"orchard","annotations":{"identity.credence.dev/workload-identities":"banana"}}}`)
	case "GET /apis/authentication.gardener.cloud/v1alpha1/namespaces/orchard/workloadidentities/banana":
		fmt.Fprint(w, `{"kind":"WorkloadIdentity","apiVersion":"authentication.gardener.cloud/v1alpha1","metadata":{"name":"banana","namespace":"orchard"},"spec":{"audiences":["a"],"targetSystem":{"type":"generic"}}}`)
	case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
		fmt.Fprintf(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":%t,"reason":"by the test"}}`, a.allowed)
	case "GET /apis/node.k8s.io/v1/runtimeclasses/hyperv":
		fmt.Fprint(w, `{"kind":"RuntimeClass","apiVersion":"node.k8s.io/v1","metadata":{"name":"hyperv"},"handler":"h","scheduling":{"nodeSelector":{"kubernetes.io/os":"windows"}}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

func kubeconfig(t testing.TB, a *certifier, name, server string) string {
	t.Helper()
	file := a.file(name)
	must(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"`+server+`"}}],"users":[{"name":"u","user":{}}]}`), 0o600))
	return file
}

// start runs the program against an API, and returns the URL that it answers at.
func start(t *testing.T, a *certifier, change func(*Config)) string {
	t.Helper()
	a.issue(t, "server")
	ctx, cancel := context.WithCancel(t.Context())
	var p *program
	// Another program may take a port for health that was free.
	testkit.Eventually(t, "the ports are free", func() bool {
		c := Config{TLSCertFile: a.file("server.crt"), TLSPrivateKeyFile: a.file("server.key"), ClientCAFile: a.file("ca.crt"), Log: slog.New(slog.DiscardHandler)}
		change(&c)
		var err error
		if p, err = assemble(ctx, c); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			cancel()
			t.Fatal(err)
		}
		return err == nil
	})
	stopped := make(chan error, 1)
	go func() { stopped <- p.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Expect(t, <-stopped, "run")
	})
	return "https://" + p.reviews.Address().String()
}

func client(t testing.TB, a *certifier, certificates ...tls.Certificate) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool, Certificates: certificates, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func review(t testing.TB, client *http.Client, url, spec string) *admissionv1.AdmissionResponse {
	t.Helper()
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":"orchard",
		"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"picker"},"spec":{"serviceAccountName":"app","containers":[{"name":"main"}]` + spec + `}}}}`
	response, err := client.Post(url+"/pods?timeout=30s", "application/json", strings.NewReader(body))
	must(t, err)
	defer response.Body.Close()
	var answer admissionv1.AdmissionReview
	must(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Response
}

func TestPodsOfTwoClusters(t *testing.T) {
	a := newAuthority(t)
	cluster := &api{allowed: true}
	workload, identity := httptest.NewServer(cluster), httptest.NewServer(cluster)
	t.Cleanup(workload.Close)
	url := start(t, a, func(c *Config) {
		c.Kubeconfig = kubeconfig(t, a, "workload", workload.URL)
		c.IdentityKubeconfig = kubeconfig(t, a, "identity", identity.URL)
	})
	client := client(t, a, a.issue(t, "client"))
	if got := review(t, client, url, ""); !got.Allowed || !strings.Contains(string(got.Patch), "/var/run/secrets/workload-identity/banana") {
		t.Errorf("%+v", got)
	}
	if got := review(t, client, url, `,"runtimeClassName":"hyperv"`); !got.Allowed || !strings.Contains(string(got.Patch), `C:\\var`) {
		t.Errorf("%+v", got)
	}
	identity.Close()
	if got := review(t, client, url, ""); got.Allowed || got.Result.Code != 500 || !strings.Contains(got.Result.Message, "read workload identity orchard/banana") {
		t.Errorf("without the identity cluster: %+v", got)
	}
}

func TestRefusalFromTheCluster(t *testing.T) {
	a := newAuthority(t)
	cluster := httptest.NewServer(&api{})
	t.Cleanup(cluster.Close)
	url := start(t, a, func(c *Config) { c.Kubeconfig = kubeconfig(t, a, "one", cluster.URL) })
	if got := review(t, client(t, a, a.issue(t, "client")), url, ""); got.Allowed || got.Result.Code != 403 || !strings.Contains(got.Result.Message, "by the test") {
		t.Errorf("%+v", got)
	}
}

func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	a, foreign := newAuthority(t), newAuthority(t)
	cluster := httptest.NewServer(&api{allowed: true})
	t.Cleanup(cluster.Close)
	url := start(t, a, func(c *Config) {
		c.Kubeconfig, c.ClientName = kubeconfig(t, a, "one", cluster.URL), "client"
	})
	if got := review(t, client(t, a, a.issue(t, "client")), url, ""); !got.Allowed {
		t.Errorf("%+v", got)
	}
	for name, client := range map[string]*http.Client{"no certificate": client(t, a), "another authority": client(t, a, foreign.issue(t, "client")), "another name": client(t, a, a.issue(t, "other"))} {
		if response, err := client.Post(url+"/pods", "application/json", strings.NewReader("{}")); err == nil {
			response.Body.Close()
			t.Errorf("%s: HTTP %d, want no answer", name, response.StatusCode)
		}
	}
}

// The authorities of clients may be replaced while reviews come; a file that cannot be read changes nothing.
func TestAuthoritiesOfClientsAreFollowed(t *testing.T) {
	a, next := newAuthority(t), newAuthority(t)
	cluster := httptest.NewServer(&api{allowed: true})
	t.Cleanup(cluster.Close)
	url := start(t, a, func(c *Config) { c.Kubeconfig = kubeconfig(t, a, "one", cluster.URL) })
	answered := func(certificate tls.Certificate) bool {
		response, err := client(t, a, certificate).Post(url+"/pods", "application/json", strings.NewReader("{}"))
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	}
	before, after := a.issue(t, "client"), next.issue(t, "client")
	testkit.Eventually(t, "one of the authority is answered", func() bool { return answered(before) })
	if answered(after) {
		t.Fatal("one of another authority is answered")
	}
	both, err := os.ReadFile(a.file("ca.crt"))
	must(t, err)
	text, err := os.ReadFile(next.file("ca.crt"))
	must(t, err)
	must(t, os.WriteFile(a.file("ca.crt"), append(both, text...), 0o600))
	testkit.Eventually(t, "one of the second authority is answered", func() bool { return answered(after) })
	testkit.Eventually(t, "one of the first of two authorities is answered", func() bool { return answered(before) })
	must(t, os.WriteFile(a.file("ca.crt"), []byte("x"), 0o600))
	must(t, os.WriteFile(a.file("ca.crt"), text, 0o600))
	testkit.Eventually(t, "one of the first authority is refused", func() bool { return !answered(before) })
	testkit.Eventually(t, "one of the authority that is left is answered", func() bool { return answered(after) })
}

func TestCheck(t *testing.T) {
	complete := func() Config { return Config{TLSCertFile: "c", TLSPrivateKeyFile: "k", Port: 9443} }
	c, err := complete().check()
	if err != nil || c.AgentUser != "system:serviceaccount:credence-system:credence-agent" || c.BindAddress != "127.0.0.1" {
		t.Errorf("%+v %v", c, err)
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no certificate": {func(c *Config) { c.TLSCertFile = "" }, "--tls-cert-file and"},
		"no key":         {func(c *Config) { c.TLSPrivateKeyFile = "" }, "--tls-cert-file and"},
		"address":        {func(c *Config) { c.BindAddress = "localhost" }, "is not an IP address"},
		"port":           {func(c *Config) { c.Port = -1 }, "--port -1"},
		"health port":    {func(c *Config) { c.HealthPort = 70000 }, "--health-port 70000"},
		"enforcement":    {func(c *Config) { c.GMSA.Enforcement = "warn" }, `--gmsa-enforcement "warn" is not allowed`},
		"path period":    {func(c *Config) { c.ReviewPathPeriod = 1 }, "--review-path-period 1ns is too short"},
		"client name":    {func(c *Config) { c.ClientName = "x" }, "--client-name needs --client-ca-file"},
		"same port":      {func(c *Config) { c.HealthPort = 9443 }, "same as --port"},
	} {
		config := complete()
		test.change(&config)
		if _, err := config.check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestWhatCanNotWorkIsSaidAtStart(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server")
	good := Config{Kubeconfig: kubeconfig(t, a, "one", "http://127.0.0.1:1"), TLSCertFile: a.file("server.crt"), TLSPrivateKeyFile: a.file("server.key"), Log: slog.New(slog.DiscardHandler)}
	for flag, change := range map[string]func(*Config){
		"--kubeconfig":          func(c *Config) { c.Kubeconfig = a.file("missing") },
		"--identity-kubeconfig": func(c *Config) { c.IdentityKubeconfig = a.file("missing") },
		"--tls-cert-file":       func(c *Config) { c.TLSCertFile = a.file("ca.crt") },
		"--client-ca-file":      func(c *Config) { c.ClientCAFile = a.file("server.key") },
	} {
		config := good
		change(&config)
		if _, err := assemble(t.Context(), config); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
