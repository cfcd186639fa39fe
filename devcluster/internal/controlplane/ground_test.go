package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/devcluster/internal/network"
)

func grounded(t *testing.T, config Config) *ground {
	t.Helper()
	config.Now = time.Now
	g, err := prepare(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = g.dir.Close(), g.listener.Close(), g.managerListener.Close() })
	return g
}

// A control plane takes its directory and ports before anything runs, and gives each part what it needs.
func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	g := grounded(t, Config{Dir: dir, Node: true, SharedPorts: []int{17445}, AuditPolicyFile: "/own.yaml", APIServerArgs: []string{"--service-account-signing-endpoint=/s"}, Guard: "/guard"})
	for name, want := range map[string]string{
		"authentication-config.yaml": "path: /readyz", "controller-manager.url": g.managerURL(), "egress.json": network.HostSocket(NodeFolder(dir)),
	} {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s is %s, %v, want %s", name, content, err, want)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", g.managerKubeconfig)
	if err != nil || config.Host != g.url() {
		t.Errorf("kube-controller-manager is led to %v, %v", config, err)
	}
	if s := g.apiServerSettings("unix:///etcd"); s.NodeAddress != network.Node || s.EgressConfigFile != filepath.Join(dir, "egress.json") || s.AuditPolicyFile != "/own.yaml" || s.Etcd != "unix:///etcd" {
		t.Errorf("kube-apiserver has %+v", s)
	}
	if s := g.controllerManagerSettings(); !s.SignsExternally || s.VolumePlugins != filepath.Join(dir, "volume-plugins") {
		t.Errorf("kube-controller-manager has %+v", s)
	}
	port := g.listener.Addr().(*net.TCPAddr).Port
	if s := g.nodeSettings(); s.Folder != filepath.Join(dir, "node") || len(s.Shared) != 2 || s.Shared[0] != port || s.Shared[1] != 17445 || s.Guard != "/guard" {
		t.Errorf("the node has %+v", s)
	}
	if err := g.writeAdminKubeconfig(); err != nil {
		t.Fatal(err)
	}
	if config, err := clientcmd.LoadFromFile(g.adminKubeconfig()); err != nil || config.AuthInfos["credence-admin"] == nil {
		t.Errorf("the admin has %v, %v", config, err)
	}
	for want, config := range map[string]Config{
		"in use by another credence-devcluster":             {Dir: dir},
		fmt.Sprintf("port %d of 127.0.0.1 is in use", port): {Dir: t.TempDir(), ControllerManagerPort: port},
	} {
		config.Now = time.Now
		if _, err := prepare(t.Context(), config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if g.apiServerSettings("").FeatureGates != "" || (Config{}).Node {
		t.Error("what was not chosen is set")
	}
}

// Probes are sent as the admin, and trust the authority of the cluster alone.
func TestProbe(t *testing.T) {
	g := grounded(t, Config{Dir: t.TempDir()})
	var status atomic.Int64 // a probe that was given up may still be answered
	status.Store(http.StatusServiceUnavailable)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != "credence-admin" {
			t.Errorf("a probe is sent as %s", name)
		}
		w.WriteHeader(int(status.Load()))
	}))
	pair, err := tls.LoadX509KeyPair(g.files.APIServer.Cert, g.files.APIServer.Key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(g.files.Authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	defer server.Close()
	if err := g.probe.ask(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "answers 503") {
		t.Errorf("a part that is not healthy: %v", err)
	}
	ended := launch(t.Context(), "etcd", func(context.Context) error { return errors.New("no disk") })
	if err := g.untilHealthy(t.Context(), server.URL, ended); err == nil || err.Error() != "etcd ended: no disk" {
		t.Errorf("a part that ends meanwhile: %v", err)
	}
	status.Store(http.StatusOK)
	if err := g.untilHealthy(t.Context(), server.URL); err != nil {
		t.Error(err)
	}
	foreign := httptest.NewTLSServer(http.NotFoundHandler())
	defer foreign.Close()
	if err := g.probe.ask(t.Context(), foreign.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of another authority: %v", err)
	}
}

func TestParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
		calm := launch(t.Context(), "calm", waits)
		hangs, release := make(chan struct{}), launch(t.Context(), "x", waits)
		stubborn := launch(t.Context(), "stubborn", func(context.Context) error { <-hangs; return nil })
		if !calm.stop(time.Second) || stubborn.stop(time.Second) {
			t.Error("a part that hangs is not waited for without end, others are")
		}
		close(hangs)
		<-stubborn.done

		failed := launch(t.Context(), "etcd", func(context.Context) error { return errors.New("no disk") })
		if err := watch(t.Context(), release, failed); err == nil || err.Error() != "etcd ended: no disk" {
			t.Errorf("a part that fails: %v", err)
		}
		ended := launch(t.Context(), "etcd", func(context.Context) error { return nil })
		if err := watch(t.Context(), ended); err == nil || err.Error() != "etcd ended by itself" {
			t.Errorf("a part that ends: %v", err)
		}
		// A signal to the whole process group ends a part, and is the user's wish to stop.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(groupSignal/2, cancel)
		if err := watch(ctx, ended); err != nil {
			t.Errorf("the user stops: %v", err)
		}
		if err := watch(ctx, release); err != nil || unlessStopped(ctx, errors.New("x")) != nil || unlessStopped(t.Context(), errors.New("x")) == nil {
			t.Errorf("the user has stopped: %v", err)
		}
		if !release.stop(time.Second) {
			t.Error("it runs")
		}
	})
}
