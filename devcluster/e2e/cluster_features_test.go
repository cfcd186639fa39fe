//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Two clusters side by side: one as it comes, one with its own AuthenticationConfiguration.
func TestClusters(t *testing.T) {
	configured := launch(t, t.TempDir(), "--authentication-config", liveOnly(t), "--feature-gates", "AllAlpha=false")
	plain := up(t, filepath.Join(t.TempDir(), strings.Repeat("long", 30)))
	configured.untilUp(t)
	client := plain.client(t)

	t.Run("a second one in the same directory is refused", func(t *testing.T) {
		refused(t, 1, "in use by another credence-devcluster (process "+fmt.Sprint(plain.cmd.Process.Pid)+")", "--dir", plain.dir, "--port", "0")
	})
	t.Run("they are two", func(t *testing.T) {
		createConfigMap(t, client)
		_, err := configured.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the other cluster's ConfigMap: error %v, want not found", err)
		}
	})
	t.Run("anonymous requests", func(t *testing.T) {
		wantStatus(t, plain, "/readyz", http.StatusOK)
		wantStatus(t, plain, "/version", http.StatusUnauthorized)
		wantStatus(t, configured, "/livez", http.StatusOK)
		wantStatus(t, configured, "/readyz", http.StatusUnauthorized)
	})
	t.Run("version", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := version.GitVersion, kubernetesVersion(t); got != want {
			t.Errorf("server is %s, want %s: build it with its version", got, want)
		}
	})
	t.Run("audit log", func(t *testing.T) { testAudit(t, plain, client) })
	t.Run("certificates are signed", func(t *testing.T) { testSigning(t, client) })
	t.Run("an aggregated API on this machine is reached", func(t *testing.T) { testAggregation(t, plain, client) })
}

// kubernetesVersion is that of versions.env.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../versions.env")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(content), "\nKUBERNETES=")
	version, _, _ := strings.Cut(after, "\n")
	return version
}

func liveOnly(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	const config = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantStatus(t *testing.T, c *cluster, path string, want int) {
	t.Helper()
	config := rest.AnonymousClientConfig(c.config(t))
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		t.Errorf("%s of %s: %s, want %d", path, c.dir, response.Status, want)
	}
}

func testAudit(t *testing.T, c *cluster, client kubernetes.Interface) {
	token := serviceAccountToken(t, client)
	const secret = "hush-hush"
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"key": secret}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	log, err := os.ReadFile(filepath.Join(c.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log[:bytes.LastIndexByte(log, '\n')+1]) {
		var event struct {
			Level, Stage, Verb string
			ObjectRef          struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		if event.Level != "Metadata" || event.Stage == "RequestReceived" {
			t.Fatalf("an event of level %s, stage %s", event.Level, event.Stage)
		}
		if strings.Contains(string(line), secret) || strings.Contains(string(line), token) {
			t.Fatal("an event holds a secret")
		}
		seen[event.Verb+" "+event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource] = true
	}
	for _, want := range []string{"create secrets/", "create serviceaccounts/token"} {
		if !seen[want] {
			t.Errorf("no event of %s", want)
		}
	}
}

func testSigning(t *testing.T, client kubernetes.Interface) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if _, err := requests.UpdateApproval(t.Context(), "jane", request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a signed certificate", func(ctx context.Context) error {
		request, err := requests.Get(ctx, "jane", metav1.GetOptions{})
		if err == nil && len(request.Status.Certificate) == 0 {
			err = errors.New("not yet")
		}
		return err
	})
}

// testAggregation registers a server of this test as the cluster's API group
// echo.example and reads from it which user the cluster names.
func testAggregation(t *testing.T, c *cluster, client *kubernetes.Clientset) {
	server, authority := echo(t, filepath.Join(c.dir, "pki", "front-proxy-ca.crt"))
	port := server.Listener.Addr().(*net.TCPAddr).Port
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: int32(port)}},
		},
	}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apiService, err := json.Marshal(map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.echo.example"},
		"spec": map[string]any{
			"group": "echo.example", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
			"caBundle": authority,
			"service":  map[string]any{"namespace": "default", "name": "echo", "port": port},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	api := client.Discovery().RESTClient()
	if err := api.Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body(apiService).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an answer of the aggregated API", func(ctx context.Context) error {
		got, err := api.Get().AbsPath("/apis/echo.example/v1/whoami").DoRaw(ctx)
		if err == nil && string(got) != "credence-admin [system:masters system:authenticated]" {
			t.Fatalf("the aggregated API got the user %q", got)
		}
		return err
	})
}

// echo answers with the user that the front proxy names, and refuses other clients.
// It returns the PEM certificate that verifies it.
func echo(t *testing.T, frontProxyCA string) (*httptest.Server, []byte) {
	t.Helper()
	trusted, err := os.ReadFile(frontProxyCA)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(trusted)
	key := newKey(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "echo"}, DNSNames: []string{"echo.default.svc"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %v", r.Header.Get("X-Remote-User"), r.Header["X-Remote-Group"])
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientCAs:    clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
