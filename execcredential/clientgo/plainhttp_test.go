package clientgo_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
)

// client-go sends tokens without TLS if a rest.Config that is written by hand has such a host. Here the pool's options must allow it too.
func TestServerWithoutTLS(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) }))
	defer server.Close()
	address := server.Listener.Addr().String()
	provider := exectest.NewProvider(t, token)
	allowing, _ := newPool(t, execcredential.Options{PlainHTTPHosts: []string{address}})
	pool, _ := newPool(t, execcredential.Options{})
	for name, host := range map[string]string{"http": server.URL, "no scheme": address} {
		for _, provideClusterInfo := range []bool{false, true} {
			config := &rest.Config{Host: host, ExecProvider: execProvider(provider)}
			config.ExecProvider.ProvideClusterInfo = provideClusterInfo
			var plain *execcredential.PlainHTTPError
			if _, err := clientgo.Config(pool, config); !errors.As(err, &plain) || plain.Server != server.URL {
				t.Errorf("%s: error %v", name, err)
			}
			if provider.Runs() != 0 {
				t.Fatalf("%s: the program ran", name)
			}
			if got, _, err := get(clientOf(t, adapted(t, allowing, config)), server.URL); got != "Bearer abc" {
				t.Errorf("%s, named: the server saw %q, error %v", name, got, err)
			}
			provider = exectest.NewProvider(t, token)
		}
	}
	config := &rest.Config{Host: server.URL, ExecProvider: execProvider(provider)}
	if got, _, err := get(clientOf(t, config), server.URL); got != "Bearer abc" {
		t.Errorf("with client-go's plugin the server saw %q, error %v: the comparison page states otherwise", got, err)
	}

	// A host that only requests name.
	provider = exectest.NewProvider(t, token)
	https := &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: execProvider(provider)}
	var plain *execcredential.PlainHTTPError
	if _, _, err := get(clientOf(t, adapted(t, pool, https)), server.URL); !errors.As(err, &plain) || provider.Runs() != 0 {
		t.Errorf("another URL than that of the config: error %v after %d runs", err, provider.Runs())
	}
}

// With a kubeconfig neither runs the program: clientcmd leaves it out.
func TestKubeconfigWithoutTLS(t *testing.T) {
	kubeconfig := api.NewConfig()
	kubeconfig.Clusters["c"] = &api.Cluster{Server: "http://127.0.0.1:1"}
	kubeconfig.AuthInfos["u"] = &api.AuthInfo{Exec: execProvider(exectest.NewProvider(t, token))}
	kubeconfig.Contexts["c"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "c"
	config := need(clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig())(t)
	if config.ExecProvider != nil {
		t.Fatal("clientcmd gives programs for servers without TLS: then the reference is wrong about it")
	}
	pool, _ := newPool(t, execcredential.Options{})
	expect(t, errOf(clientgo.Config(pool, config)))
	content := need(clientcmd.Write(*kubeconfig))(t)
	var plain *execcredential.PlainHTTPError
	if _, err := execcredential.ParseKubeconfig(content, t.TempDir(), execcredential.Selection{}); !errors.As(err, &plain) || !strings.Contains(err.Error(), "clusters[name=c].cluster.server") {
		t.Errorf("error %v", err)
	}
}
