package clientgo_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// beside runs f with a config that client-go's own plugin serves, and with one that this library serves with a clock that stands still.
func beside(t *testing.T, f func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config)) {
	t.Run("client-go", func(t *testing.T) { f(t, false, func(c *rest.Config) *rest.Config { return c }) })
	t.Run("execcredential", func(t *testing.T) {
		pool, _ := newPool(t, execcredential.Options{})
		f(t, true, func(c *rest.Config) *rest.Config { return adapted(t, pool, c) })
	})
}

// 50 requests one after the other, with a program whose output is past its expiry: client-go runs it for each, and this library serves
// each what the last run gave, without a wait.
func TestExpiredOutputOneAfterTheOther(t *testing.T) {
	beside(t, func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config) {
		server := newAPIServer(t)
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return exectest.Token("abc", time.Now().Add(-time.Hour))
		})
		client := clientOf(t, through(server.config(provider)))
		for range 50 {
			if _, status, err := get(client, server.URL); status != 200 {
				t.Fatalf("status %d, error %v", status, err)
			}
		}
		if runs := provider.Runs(); ours && runs != 1 || !ours && runs < 50 {
			t.Errorf("%d runs", runs)
		}
	})
}

// A wrapper of the caller around the connections of a config sees each request as it is sent. With this library it sees the second try of
// a request whose token was refused, too; and the certificate that belongs to the token reaches the server.
func TestWrappersOfTheCallerSeeTheToken(t *testing.T) {
	beside(t, func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config) {
		server := newAPIServer(t)
		server.accept(func(token, name string) bool { return token == "Bearer second" && name == "jane" })
		certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(1000*time.Hour))
		runs := 0
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			runs++
			answer := exectest.Certificate(certificate, key, time.Time{})
			answer.Status.Token = map[bool]string{true: "first", false: "second"}[runs == 1]
			return answer
		})
		var saw []string
		config := server.config(provider)
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
				saw = append(saw, strings.Join(r.Header["Authorization"], ","))
				return rt.RoundTrip(r)
			})
		})
		client := clientOf(t, through(config))
		if ours {
			if body, status, err := get(client, server.URL); status != 200 {
				t.Errorf("body %q, status %d, error %v", body, status, err)
			}
		} else {
			for _, want := range []int{401, 200} { // client-go does not send a request again
				if _, status, err := get(client, server.URL); status != want {
					t.Errorf("status %d, error %v", status, err)
				}
			}
		}
		if want := []string{"Bearer first", "Bearer second"}; !slices.Equal(saw, want) {
			t.Errorf("the wrapper saw %q, want %q", saw, want)
		}
	})
}

// A certificate without a token reaches the server through the caller's wrappers as well, and a new one over new connections.
func TestCertificateBehindWrappersOfTheCaller(t *testing.T) {
	server := newAPIServer(t)
	names := []string{"one", "two"}
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		certificate, key := server.authority.Issue(names[0], start.Add(-time.Hour), start.Add(1000*time.Hour))
		names = names[1:]
		return exectest.Certificate(certificate, key, start.Add(time.Hour))
	})
	pool, clock := newPool(t, execcredential.Options{})
	config := server.config(provider)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(r *http.Request) (*http.Response, error) { return rt.RoundTrip(r.Clone(r.Context())) })
	})
	client := clientOf(t, adapted(t, pool, config))
	for _, want := range []string{"one", "one", "two"} {
		if body, status, err := get(client, server.URL); status != 200 || !strings.Contains(body, want) {
			t.Errorf("body %q, status %d, error %v, want %s", body, status, err, want)
		}
		clock.Advance(31 * time.Minute)
	}
}

// Several kubeconfigs are one to clientcmd and to the reader of this library, and static users are presented alike.
func TestKubeconfigsOfSeveralFiles(t *testing.T) {
	server := newAPIServer(t)
	certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(1000*time.Hour))
	first, second := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(first, "config"): "apiVersion: v1\nkind: Config\ncontexts: [{name: c, context: {user: token, cluster: k}}, {name: file, context: {user: file, cluster: k}}]\n" +
			"users: [{name: token, user: {token: first}}, {name: both, user: {token: own, tokenFile: token}}]\n",
		filepath.Join(second, "config"): "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
			"contexts: [{name: c, context: {user: certificate, cluster: k}}, {name: certificate, context: {user: certificate, cluster: k}}, {name: both, context: {user: both, cluster: k}}]\n" +
			"clusters: [{name: k, cluster: {server: '" + server.URL + "', certificate-authority: ca.pem}}]\n" +
			"users: [{name: token, user: {token: second}}, {name: file, user: {tokenFile: token}}, {name: certificate, user: {client-certificate: cert.pem, client-key: key.pem}}]\n",
		filepath.Join(first, "token"): "of-first", filepath.Join(second, "token"): "of-second",
		filepath.Join(second, "ca.pem"): string(server.authority.PEM()), filepath.Join(second, "cert.pem"): certificate, filepath.Join(second, "key.pem"): key,
	} {
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	missing := filepath.Join(first, "missing")
	for _, list := range [][]string{{filepath.Join(first, "config"), missing, filepath.Join(second, "config")}, {filepath.Join(second, "config"), filepath.Join(first, "config")}} {
		t.Setenv("KUBECONFIG", strings.Join(list, string(os.PathListSeparator)))
		for _, context := range []string{"", "c", "file", "certificate", "both"} {
			config := need(clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig())(t)
			want, status, err := get(clientOf(t, config), server.URL)
			if err != nil || status != 200 {
				t.Fatalf("client-go: status %d, error %v", status, err)
			}
			read := need(execcredential.LoadKubeconfig("", execcredential.Selection{Context: context}))(t)
			base := need(read.Cluster.Transport())(t)
			pool, _ := newPool(t, execcredential.Options{})
			source := need(pool.Source(read))(t)
			if got, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL); got != want {
				t.Errorf("context %q: the server saw %s, and of client-go %s; error %v", context, got, want, err)
			}
		}
	}
}
