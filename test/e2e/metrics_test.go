package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// healthPorts are those with /livez, /readyz, /version and /metrics, counted from the first port of a plane.
var healthPorts = map[string]int{"apiserver": 1, "discovery": 3, "controller": 4, "agent": 5, "webhook": 7, "binder": 8, "profiles": 10}

// onPort returns the configuration for another port of the plane, counted from the first, which is kube-apiserver's.
func (p plane) onPort(t *testing.T, offset int) *rest.Config {
	t.Helper()
	var port int
	need(fmt.Sscanf(p.APIServer, "https://127.0.0.1:%d", &port))(t)
	config := p.config(t)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port+offset)
	return config
}

// accountToken returns a token of a new service account.
func (p plane) accountToken(t *testing.T, namespace, name string) string {
	t.Helper()
	accounts := p.client(t).CoreV1().ServiceAccounts(namespace)
	need(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	token := need(accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	return token.Status.Token
}

// metricsReader returns a token of a new service account that may read the metrics of all servers.
func (p plane) metricsReader(t *testing.T, namespace string) string {
	t.Helper()
	reader, bindings := p.accountToken(t, namespace, "reader"), p.client(t).RbacV1().ClusterRoleBindings()
	need(bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "credence:metrics:reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = bindings.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}) })
	return reader
}

// awaitMetric waits until a server shows a line among its metrics.
func (p plane) awaitMetric(t *testing.T, server, token, line string) {
	t.Helper()
	config := rest.AnonymousClientConfig(p.onPort(t, healthPorts[server]))
	config.BearerToken = token
	eventually(t, func() error { return do(t, config, "GET", "/metrics", "", "").is(200, "\n"+line+"\n") })
}

// Metrics are for users whom the cluster allows to read them. Each server shows which build it is.
func TestPlaneMetricsOfAllServers(t *testing.T) {
	p := alone(t)
	namespace := p.namespace(t)
	reader, other := p.metricsReader(t, namespace), p.accountToken(t, namespace, "other")
	p.create(t, namespace, "banana", "generic", "audience")
	foreign := token(t, p.config(t), namespace, "banana", "{}").Status.Token

	for server, port := range healthPorts {
		t.Run(server, func(t *testing.T) {
			anonymous := rest.AnonymousClientConfig(p.onPort(t, port))
			with := func(token string) *rest.Config {
				config := rest.CopyConfig(anonymous)
				config.BearerToken = token
				return config
			}
			for _, test := range map[string]struct {
				token string
				code  int
			}{
				"without a token":                     {"", 401},
				"with a forged token":                 {reader[:len(reader)-8] + "AAAAAAAA", 401},
				"with a token of a workload identity": {foreign, 401},
				"with a token of an account alone":    {other, 403},
				"with a token of those who may":       {reader, 200},
			} {
				eventually(t, func() error { return do(t, with(test.token), "GET", "/metrics", "", "").is(test.code) })
			}
			if got := string(do(t, with(reader), "GET", "/metrics", "", "").Body); !strings.Contains(got, "\ncredence_build_info{") {
				t.Errorf("no credence_build_info among %d bytes of metrics", len(got))
			}
			for _, path := range []string{"/livez", "/readyz"} {
				eventually(t, func() error { return do(t, anonymous, "GET", path, "", "").is(200) })
			}
			got := do(t, with(other), "GET", "/version", "", "")
			var version struct{ Version, GitVersion, GoVersion, Platform string }
			if err := json.Unmarshal(got.Body, &version); err != nil || got.Code != 200 {
				t.Fatalf("/version: %d %s, %v", got.Code, got.Body, err)
			}
			if want := p.must(t, "", "credence-server", "--version"); !strings.HasPrefix(want, "credence-server "+version.Version+version.GitVersion+" (") || version.GoVersion == "" || version.Platform == "" {
				t.Errorf("/version %s of the build %s", got.Body, want)
			}
		})
	}
}
