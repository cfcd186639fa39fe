package apiserver

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// kube-apiserver takes its settings, in a cluster without a node and with one. There can be one server in a process.
func TestAPIServerTakesItsSettings(t *testing.T) {
	folder := t.TempDir()
	files, err := pki.Ensure(folder, net.IPv4(10, 96, 0, 1), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	written := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := Settings{
		PKI: files, Etcd: "unix:///etcd.sock", ServiceCIDR: "10.96.0.0/16", AuditLogFile: filepath.Join(folder, "audit.log"), NodeAddress: "10.98.0.1",
		AuthenticationConfigFile: written("authentication.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}\n"),
		AuditPolicyFile:          written("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"),
		EgressConfigFile:         written("egress.json", `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[{"name":"cluster","connection":{"proxyProtocol":"Direct"}}]}`),
		Extra:                    []string{"--max-requests-inflight=123"},
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	server, err := New(t.Context(), settings, listener)
	if err != nil {
		t.Fatal(err)
	}
	got := server.options
	if got.SecureServing.BindPort != listener.Addr().(*net.TCPAddr).Port || got.GenericServerRunOptions.AdvertiseAddress.String() != "10.98.0.1" || got.GenericServerRunOptions.MaxRequestsInFlight != 123 {
		t.Errorf("port %d, address %s, %d requests", got.SecureServing.BindPort, got.GenericServerRunOptions.AdvertiseAddress, got.GenericServerRunOptions.MaxRequestsInFlight)
	}
	if !slices.Equal(got.Authorization.Modes, []string{"Node", "RBAC"}) || got.Etcd.StorageConfig.Transport.ServerList[0] != "unix:///etcd.sock" {
		t.Errorf("authorization by %v, etcd at %v", got.Authorization.Modes, got.Etcd.StorageConfig.Transport.ServerList)
	}
}

func TestFlagsThatAreNone(t *testing.T) {
	for argument, want := range map[string]string{"--nonsense": "unknown flag: --nonsense", "word": `"word" is not a flag`} {
		if err := parse(options.NewServerRunOptions(), Settings{Extra: []string{argument}}.args()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// Everything stays on the loopback where there is no node, and kube-apiserver has no key of its own where another program signs.
func TestArguments(t *testing.T) {
	for flag, test := range map[string]struct {
		settings Settings
		given    bool
	}{
		"--advertise-address=127.0.0.1":                    {Settings{}, true},
		"--endpoint-reconciler-type=none":                  {Settings{NodeAddress: "10.98.0.1"}, false},
		"--kubelet-preferred-address-types=InternalIP":     {Settings{NodeAddress: "10.98.0.1"}, true},
		"--service-account-signing-key-file=":              {Settings{}, true},
		"--service-account-key-file=":                      {Settings{Extra: []string{"--service-account-signing-endpoint=/s"}}, false},
		"--feature-gates=A=true":                           {Settings{FeatureGates: "A=true"}, true},
		"--feature-gates=":                                 {Settings{}, false},
		"--bind-address=127.0.0.1":                         {Settings{NodeAddress: "10.98.0.1"}, true},
		"--service-account-issuer=" + ServiceAccountIssuer: {Settings{}, true},
	} {
		if got := slices.Contains(test.settings.args(), flag); got != test.given {
			t.Errorf("%s is given: %t", flag, got)
		}
	}
	for argument, want := range map[string]bool{"--service-account-signing-endpoint=/s": true, "-service-account-signing-endpoint=/s": true, "--service-account-signing-key-file=/s": false} {
		if got := SignsExternally([]string{"--v=2", argument}); got != want {
			t.Errorf("%s: %t", argument, got)
		}
	}
}
