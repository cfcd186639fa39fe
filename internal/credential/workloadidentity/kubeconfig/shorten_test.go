package kubeconfig_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

func data(t testing.TB) string {
	t.Helper()
	random := make([]byte, 1500)
	testkit.Must(t, testkit.Err(rand.Read(random)))
	return base64.StdEncoding.EncodeToString(random)
}

// large is a kubeconfig as kubectl writes one for so many clusters.
func large(t testing.TB, clusters int) string {
	ca, secret := data(t), data(t)
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c0\nclusters:\n"
	for i := range clusters {
		text += fmt.Sprintf("- cluster:\n    certificate-authority-data: %s\n    server: https://c%d.example\n  name: c%d\n", ca, i, i)
	}
	text += "contexts:\n"
	for i := range clusters {
		text += fmt.Sprintf("- context:\n    cluster: c%d\n    user: u%d\n  name: c%d\n", i, i, i)
	}
	text += "users:\n"
	for i := range clusters {
		text += fmt.Sprintf("- name: u%d\n  user:\n    client-certificate-data: %s\n    client-key-data: %s\n    token: %s\n", i, secret, secret, secret)
	}
	return text
}

// The shortening changes nothing: other ways to write the same kubeconfig have the same key.
func TestSameKubeconfigWrittenOtherwise(t *testing.T) {
	block := large(t, 3)
	asJSON := testkit.Need(yaml.YAMLToJSON([]byte(block)))(t)
	var want map[string]string
	for what, text := range map[string]string{
		"block": block, "JSON": string(asJSON), "CRLF": strings.ReplaceAll(block, "\n", "\r\n"),
		"item first": strings.ReplaceAll(block, "- cluster:\n    certificate", "- cluster: \n    certificate"),
		"quoted":     strings.ReplaceAll(strings.ReplaceAll(block, "authority-data: ", `authority-data: "`), "\n    server", "\"\n    server"),
	} {
		got, err := kubeconfig.Choice{Path: put(t, filepath.Join(t.TempDir(), "config"), text), Context: "c2", Environment: environment()}.Read()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got.User != "u2" || !strings.HasPrefix(got.Key()["ca"], "sha256:") {
			t.Errorf("%s: %v", what, got.Key())
		}
		if want == nil {
			want = got.Key()
		}
		if diff := cmp.Diff(want, got.Key()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, clusters := range []int{1, 100} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "config")
			write(b, path, large(b, clusters))
			choice := kubeconfig.Choice{Path: path, Environment: environment()}
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, testkit.Err(choice.Read()))
			}
		})
	}
}
