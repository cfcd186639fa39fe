package kubernetes_test

import (
	"crypto/x509"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/kubernetes"
	"github.com/credence-id/credence/internal/target/targettest"
	"github.com/credence-id/credence/test/testkit"
)

const head = `{"apiVersion":"kubernetes.authentication.gardener.cloud/v1alpha1","kind":"Config","server":"https://api.example.com:6443"`

// authority is a certificate and its key, in PEM.
var authority = sync.OnceValues(func() (certificate, key string) {
	made, err := testkit.Certify(x509.Certificate{NotAfter: time.Unix(4e9, 0), IsCA: true}, nil)
	if err != nil {
		panic(err)
	}
	return string(made.PEM()), string(made.KeyPEM())
})

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func suite() targettest.Suite {
	certificate, _ := authority()
	return targettest.Suite{Adapter: kubernetes.Adapter{}, Accepted: []string{
		head + `,"certificateAuthorityData":"` + encode(certificate) + `","namespace":"reports"}`,
		head + `}`,
	}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, kubernetes.System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	certificate, key := authority()
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"server": {
			"https://api.example.com": true, "https://10.0.0.1:6443": true, "https://[fd00::1]:6443": true, "https://api.example.com/k8s/clusters/c-1": true, "https://localhost:1": true,
			"http://api.example.com": false, "api.example.com": false, "https://": false, "https://user@api.example.com": false, "https://api.example.com?x=y": false, "https://api.example.com#x": false,
			"https://api.example.com:0": false, "https://api.example.com:65536": false, "https://api.example.com:": false, "https://[fd00::1": false, "https://[]": false, "https://.": false,
			"https://api.example.com\n": false, "https://api.example.com/ x": false, "HTTPS://api.example.com": false, "https://api.example.com/%2e": false,
			"https://" + strings.Repeat("a", 2040): true, "https://" + strings.Repeat("a", 2041): false, "": false,
		},
		"certificateAuthorityData": {
			encode(certificate): true, encode(certificate + "\n\n" + certificate): true, "": true,
			encode(key): false, encode(certificate + key): false, encode("x" + certificate): false, encode("x\n" + certificate): false, encode(certificate + "x"): false, encode(" "): false, certificate: false, "%": false,
			encode("-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"): false, encode(strings.Repeat(certificate, 100)): false,
		},
		"namespace": {"reports": true, "": true, "a.b": false, "Reports": false, "a\nb": false},
	})
}

func TestKubeconfig(t *testing.T) {
	certificate, _ := authority()
	for _, test := range []struct {
		config, cluster, context string
		place                    target.Place
		token, file              string
	}{
		{suite().Accepted[0], "    certificate-authority-data: " + encode(certificate) + "\n", "    namespace: reports\n", target.SecretPlace("kubernetes"), "/var/run/workload-identity/kubernetes/token", "/var/run/workload-identity/kubernetes/kubeconfig"},
		{suite().Accepted[1], "", "", target.PodPlace(target.Windows, target.DefaultMountPath, "one"), `C:\var\run\secrets\workload-identity\one\token`, `C:\var\run\secrets\workload-identity\one\kubeconfig`},
	} {
		config, errs := kubernetes.Adapter{}.Parse([]byte(test.config), field.NewPath("x"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		want := target.Injection{
			Keys: []target.Key{{Name: "kubeconfig", Content: "apiVersion: v1\nclusters:\n- cluster:\n" + test.cluster + "    server: https://api.example.com:6443\n  name: workload-identity\n" +
				"contexts:\n- context:\n    cluster: workload-identity\n" + test.context + "    user: workload-identity\n  name: workload-identity\n" +
				"current-context: workload-identity\nkind: Config\nusers:\n- name: workload-identity\n  user:\n    tokenFile: " + test.token + "\n"}},
			Mounts: []string{"kubeconfig"},
			Env:    []target.Variable{{Name: "KUBECONFIG", Value: test.file}},
		}
		if diff := cmp.Diff(want, config.Injection(test.place)); diff != "" {
			t.Errorf("injection (-want +got):\n%s", diff)
		}
	}
}

func TestTokenOnly(t *testing.T) {
	config, errs := kubernetes.Adapter{}.Parse(nil, field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(target.Injection{}, config.Injection(target.SecretPlace("kubernetes"))); diff != "" {
		t.Errorf("injection without a configuration:\n%s", diff)
	}
}
