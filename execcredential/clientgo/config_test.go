package clientgo_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
)

func token(exectest.Call) exectest.Answer { return exectest.Token("abc", time.Time{}) }

// A program's KUBERNETES_EXEC_INFO is byte for byte the same: by client-go, by this adapter, and by the reader of kubeconfigs.
func TestExecInfoIsThatOfClientGo(t *testing.T) {
	server := newAPIServer(t)
	provider := exectest.NewProvider(t, token)
	var env strings.Builder
	for _, e := range provider.Config().Env {
		fmt.Fprintf(&env, "\n      - {name: %s, value: %q}", e.Name, e.Value)
	}
	kubeconfig := func(version, user, cluster string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/%s
      command: %s
      env:%s
%s
clusters:
- name: c
  cluster:
    server: %s
    certificate-authority: ca.pem
%s
`, version, provider.Config().Command, env.String(), indent(user, 6), server.URL, indent(cluster, 4))
	}
	for name, content := range map[string]string{
		"v1":              kubeconfig("v1", "interactiveMode: Never", ""),
		"v1beta1":         kubeconfig("v1beta1", "", ""),
		"cluster":         kubeconfig("v1", "interactiveMode: Never\nprovideClusterInfo: true", ""),
		"cluster v1beta1": kubeconfig("v1beta1", "interactiveMode: IfAvailable\nprovideClusterInfo: true", ""),
		"everything": kubeconfig("v1", "interactiveMode: Never\nprovideClusterInfo: true", `tls-server-name: 127.0.0.1
disable-compression: true
extensions:
- name: other
  extension: {not: this}
- name: client.authentication.k8s.io/exec
  extension: {zeta: yes, html: "<a&b>", number: 1.50, big: 12345678901234567890, octal: 0777, list: [a, {b: no}], date: 2030-01-01, 8: key, empty: {}, none: null, quoted: "on", text: "ü\u2028"}`),
		"scalar extension": kubeconfig("v1", "interactiveMode: Never\nprovideClusterInfo: true", "extensions: [{name: client.authentication.k8s.io/exec, extension: {a: x}}]"),
		"anchors": kubeconfig("v1", "interactiveMode: Never\nprovideClusterInfo: true", `extensions:
- name: client.authentication.k8s.io/exec
  extension: {base: &b {a: 1, b: 2}, merged: {<<: *b, b: 3}, again: *b}`),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "config")
			must(t, errors.Join(os.WriteFile(path, []byte(content), 0o600), os.WriteFile(filepath.Join(folder, "ca.pem"), server.authority.PEM(), 0o600)))
			config := need(clientcmd.BuildConfigFromFlags("", path))(t)
			pool, _ := newPool(t, execcredential.Options{})
			for _, c := range []*rest.Config{config, adapted(t, pool, config)} {
				if _, status, err := get(clientOf(t, c), server.URL); status != 200 {
					t.Fatalf("status %d, error %v", status, err)
				}
			}
			read := need(execcredential.LoadKubeconfig(path, execcredential.Selection{}))(t)
			reading, _ := newPool(t, execcredential.Options{})
			source := need(reading.Source(read))(t)
			need(source.Get(t.Context()))(t)
			calls := provider.Calls()
			calls = calls[len(calls)-3:]
			if diff := cmp.Diff(calls[0].Info, calls[1].Info); diff != "" {
				t.Errorf("the adapter: %s", diff)
			}
			if diff := cmp.Diff(calls[0].Info, calls[2].Info); diff != "" {
				t.Errorf("the reader: %s", diff)
			}
			if diff := cmp.Diff(calls[0].Args, calls[1].Args); diff != "" {
				t.Errorf("arguments: %s", diff)
			}
		})
	}
}

func indent(text string, by int) string {
	if text == "" {
		return ""
	}
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
}

func TestStaticCredentialsWin(t *testing.T) {
	server := newAPIServer(t)
	certificate, key := server.authority.Issue("static", start.Add(-time.Hour), start.Add(1000*time.Hour))
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("from-file"), 0o600))
	for name, c := range map[string]struct {
		change func(*rest.Config)
		want   string
	}{
		"token":       {func(c *rest.Config) { c.BearerToken = "static" }, `{"name":"","token":"Bearer static"}`},
		"token file":  {func(c *rest.Config) { c.BearerTokenFile = file }, `{"name":"","token":"Bearer from-file"}`},
		"basic":       {func(c *rest.Config) { c.Username, c.Password = "jane", "pass" }, `{"name":"","token":"Basic amFuZTpwYXNz"}`},
		"certificate": {func(c *rest.Config) { c.CertData, c.KeyData = []byte(certificate), []byte(key) }, `{"name":"static","token":""}`},
		"none":        {func(*rest.Config) {}, `{"name":"","token":"Bearer abc"}`},
		"only a key":  {func(c *rest.Config) { c.KeyData = []byte(key) }, `{"name":"","token":"Bearer abc"}`},
		"no plugin":   {func(c *rest.Config) { c.ExecProvider = nil }, `{"name":"","token":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			provider := exectest.NewProvider(t, token)
			pool, _ := newPool(t, execcredential.Options{})
			config := server.config(provider)
			c.change(config)
			out := adapted(t, pool, config)
			if out.ExecProvider != nil {
				t.Error("client-go's plugin would run too")
			}
			got, _, err := get(clientOf(t, out), server.URL)
			if err != nil || strings.TrimSpace(got) != c.want {
				t.Errorf("the server saw %s, error %v, want %s", got, err, c.want)
			}
			if runs := provider.Runs(); (runs > 0) != strings.Contains(c.want, "abc") {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

func TestConfigIsNotChanged(t *testing.T) {
	server := newAPIServer(t)
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	config := server.config(provider)
	before := config.ExecProvider.DeepCopy()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { adapted(t, pool, config) })
	}
	wg.Wait()
	if !reflect.DeepEqual(before, config.ExecProvider) || config.WrapTransport != nil {
		t.Error("the config that went in was changed")
	}
	if pool.Len() != 1 {
		t.Errorf("%d sources", pool.Len())
	}
	for name, change := range map[string]func(*rest.Config){
		"both plugins":  func(c *rest.Config) { c.AuthProvider = &api.AuthProviderConfig{Name: "x"} },
		"relative":      func(c *rest.Config) { c.ExecProvider.Command = "./plugin" },
		"version":       func(c *rest.Config) { c.ExecProvider.APIVersion = "client.authentication.k8s.io/v1alpha1" },
		"no mode":       func(c *rest.Config) { c.ExecProvider.InteractiveMode = "" },
		"policy":        func(c *rest.Config) { c.ExecProvider.PluginPolicy.PolicyType = "Some" },
		"empty list":    func(c *rest.Config) { c.ExecProvider.PluginPolicy.PolicyType = api.PluginPolicyAllowlist },
		"list too many": func(c *rest.Config) { c.ExecProvider.PluginPolicy.Allowlist = []api.AllowlistEntry{} },
		"missing CA": func(c *rest.Config) {
			c.ExecProvider.ProvideClusterInfo, c.CAData, c.CAFile = true, nil, "/no/such/file"
		},
	} {
		bad := server.config(provider)
		change(bad)
		if _, err := clientgo.Config(pool, bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPolicyOfAConfig(t *testing.T) {
	server := newAPIServer(t)
	provider := exectest.NewProvider(t, token)
	for name, c := range map[string]struct {
		policy api.PluginPolicy
		denied bool
	}{
		"deny":   {policy: api.PluginPolicy{PolicyType: api.PluginPolicyDenyAll}, denied: true},
		"other":  {policy: api.PluginPolicy{PolicyType: api.PluginPolicyAllowlist, Allowlist: allowlist("/bin/sh")}, denied: true},
		"listed": {policy: api.PluginPolicy{PolicyType: api.PluginPolicyAllowlist, Allowlist: allowlist(provider.Config().Command)}},
	} {
		pool, _ := newPool(t, execcredential.Options{})
		config := server.config(provider)
		config.ExecProvider.PluginPolicy = c.policy
		_, _, err := get(clientOf(t, adapted(t, pool, config)), server.URL)
		var denied *execcredential.PolicyError
		if errors.As(err, &denied) != c.denied || !c.denied && err != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// allowlist has the one field of an entry set, whose name differs between the versions of client-go.
func allowlist(command string) []api.AllowlistEntry {
	list := make([]api.AllowlistEntry, 1)
	reflect.ValueOf(&list[0]).Elem().Field(0).SetString(command)
	return list
}

// An entry with a condition that is not known here must not allow a program that does not meet it.
func TestUnknownFieldsOfAnAllowlist(t *testing.T) {
	for name, c := range map[string]struct {
		entry any
		want  string
		fails bool
	}{
		"client-go 0.35": {entry: struct{ Name string }{"aws"}, want: "aws"},
		"client-go 0.36": {entry: struct{ Command string }{"aws"}, want: "aws"},
		"unknown, set":   {entry: struct{ Command, Digest string }{"aws", "sha256:1"}, fails: true},
		"unknown, empty": {entry: struct{ Command, Digest string }{"aws", ""}, want: "aws"},
	} {
		got, err := clientgo.AllowedCommand(c.entry)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Clients made of equal configs share connections, however often they are made, as with client-go.
func TestConnectionsAreShared(t *testing.T) {
	server := newAPIServer(t)
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	clients := []*kubernetes.Clientset{}
	for range 50 {
		clientset := need(kubernetes.NewForConfig(adapted(t, pool, server.config(provider))))(t)
		clients = append(clients, clientset)
		need(clientset.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context()))(t)
	}
	if got := server.opened.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
	if got := server.protocol.Load(); got != 2 {
		t.Errorf("HTTP/%d is spoken", got)
	}
	runtime.KeepAlive(clients) // client-go forgets the transports of clients that are no longer referenced
	if provider.Runs() != 1 {
		t.Errorf("%d runs", provider.Runs())
	}
}

// 100 concurrent requests of a clientset with a revoked token: one run, 100 successes. The caller's wrappers see each request as it is sent.
func TestStormOfRevokedTokens(t *testing.T) {
	server := newAPIServer(t)
	var run, wrapped atomic.Int32
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		return exectest.Token(fmt.Sprintf("token-%d", run.Add(1)), start.Add(time.Hour))
	})
	pool, _ := newPool(t, execcredential.Options{})
	config := server.config(provider)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(r *http.Request) (*http.Response, error) { wrapped.Add(1); return rt.RoundTrip(r) })
	})
	clientset := need(kubernetes.NewForConfig(adapted(t, pool, config)))(t)
	request := func() error {
		return errOf(clientset.RESTClient().Post().AbsPath("/version").Body([]byte("{}")).DoRaw(context.Background()))
	}
	must(t, request())
	server.accept(func(token, _ string) bool { return token == "Bearer token-2" })
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { expect(t, request()) })
	}
	wg.Wait()
	if provider.Runs() != 2 || wrapped.Load() <= 101 {
		t.Errorf("%d runs, %d requests seen by the wrapper", provider.Runs(), wrapped.Load())
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// upgrader makes its own connections of a TLS configuration, as the round trippers of exec, attach and port-forward do.
type upgrader struct{ config *tls.Config }

func (u *upgrader) TLSClientConfig() *tls.Config { return u.config }

func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	connection, err := tls.Dial("tcp", r.URL.Host, u.config)
	if err != nil {
		return nil, err
	}
	if err := r.Write(connection); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(connection), r)
}

// exec, attach and port-forward upgrade connections that client-go makes itself, in the way of this test: they have token and
// certificate too.
func TestUpgrades(t *testing.T) {
	server := newAPIServer(t)
	certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(1000*time.Hour))
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		answer := exectest.Certificate(certificate, key, time.Time{})
		answer.Status.Token = "abc"
		return answer
	})
	pool, _ := newPool(t, execcredential.Options{})
	config := adapted(t, pool, server.config(provider))
	tlsConfig := need(rest.TLSConfigFor(config))(t)
	rt := need(rest.HTTPWrappersForConfig(config, &upgrader{tlsConfig}))(t)
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/exec", nil)
	response := need(rt.RoundTrip(request))(t)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != `{"name":"jane","token":"Bearer abc"}`+"\n" {
		t.Errorf("the server saw %q", body)
	}

	// Those that look into a transport for its TLS, as proxies do, find the certificate.
	transport := need(rest.TransportFor(config))(t)
	found, err := utilnet.TLSClientConfig(transport)
	if err != nil || found.GetClientCertificate == nil || found.RootCAs == nil {
		t.Errorf("TLS configuration %v, error %v", found, err)
	}
}

func TestCustomTransportAndProxy(t *testing.T) {
	server := newAPIServer(t)
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	config := server.config(provider)
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = server.Client().Transport
	if _, err := rest.HTTPClientFor(config); err == nil {
		t.Error("client-go takes a transport together with a program: the comparison page states otherwise")
	}
	if got, _, err := get(clientOf(t, adapted(t, pool, config)), server.URL); !strings.Contains(got, "Bearer abc") {
		t.Errorf("the server saw %s, error %v", got, err)
	}
	sent := false
	config.Transport = roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		sent = true
		return server.Client().Transport.RoundTrip(r)
	})
	if got, _, err := get(clientOf(t, adapted(t, pool, config)), server.URL); !strings.Contains(got, "Bearer abc") {
		t.Errorf("by something that is not an http.Transport the server saw %s, error %v", got, err)
	}
	sent = false
	certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(1000*time.Hour))
	config.ExecProvider = execProvider(exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return exectest.Certificate(certificate, key, time.Time{}) }))
	if got, _, err := get(clientOf(t, adapted(t, pool, config)), server.URL); err == nil || !strings.Contains(err.Error(), "rest.Config.Transport") || sent {
		t.Errorf("with a certificate that nothing shows the server saw %q, error %v", got, err)
	}
	config = server.config(provider)
	asked := false
	config.Proxy = func(*http.Request) (*url.URL, error) { asked = true; return nil, nil }
	if got, _, err := get(clientOf(t, adapted(t, pool, config)), server.URL); !strings.Contains(got, "Bearer abc") || !asked {
		t.Errorf("the server saw %s, error %v, proxy asked: %v", got, err, asked)
	}
}

// Over a transport of the caller's making, whatever it is, a redirect to another server is followed without a token.
func TestRedirectOverACustomTransport(t *testing.T) {
	saw := func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.Header.Get("Authorization")) }
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(saw))
	defer elsewhere.Close()
	home := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		saw(w, r)
	}))
	defer home.Close()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer insecure.CloseIdleConnections()
	pool, _ := newPool(t, execcredential.Options{})
	config := &rest.Config{Host: home.URL, Transport: roundTripperFunc(insecure.RoundTrip), ExecProvider: execProvider(exectest.NewProvider(t, token))}
	client := clientOf(t, adapted(t, pool, config))
	for path, want := range map[string]string{"/home": `"Bearer abc"`, "/away": `""`} {
		if got, _, err := get(client, home.URL+path); got != want {
			t.Errorf("%s: the server saw %s, error %v", path, got, err)
		}
	}
}

// Configs that come and go leave no memory behind.
func TestNoMemoryIsLeft(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{MaxSources: 10})
	authority := exectest.NewAuthority(t).PEM()
	comment := []byte(strings.Repeat("# comment comment comment\n", 2000)) // 50 KiB
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			ca := append(append([]byte(nil), comment...), authority...)
			config := &rest.Config{
				Host:            "https://127.0.0.1:1",
				Proxy:           http.ProxyFromEnvironment, // else client-go keeps the transport
				TLSClientConfig: rest.TLSClientConfig{CAData: ca},
				ExecProvider: &api.ExecConfig{Command: "login", Args: []string{fmt.Sprint(i)}, APIVersion: execcredential.V1,
					InteractiveMode: api.NeverExecInteractiveMode, ProvideClusterInfo: true},
			}
			need(rest.TransportFor(adapted(t, pool, config)))(t)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill(0, 20)
	before := heap()
	fill(20, 1020) // 50 MiB of certificate authorities
	if after := heap(); after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if pool.Len() != 10 {
		t.Errorf("%d sources are remembered", pool.Len())
	}
}

func largeCA(t testing.TB) []byte {
	block, _ := pem.Decode(exectest.NewAuthority(t).PEM())
	one := pem.EncodeToMemory(block)
	var all []byte
	for len(all) < 200<<10 {
		all = append(all, one...)
	}
	return all
}
