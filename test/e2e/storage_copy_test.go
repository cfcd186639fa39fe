package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Identities that move from the embedded etcd into records keep uid and subject.
func TestPlaneStorageCopy(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	namespace := p.namespace(t)
	before := p.create(t, namespace, "cart", "aws", "team")
	etcd := "embedded:" + filepath.Join(p.Dir, "apiserver", "etcd")
	kubeconfig := filepath.Join(p.Dir, "pki", "apiserver", "kubeconfig")
	move := func(kubeconfig string) (string, int) {
		_, stderr, code := p.command(t, "", "credence-server", "storage", "copy", "--from", etcd, "--to", "cluster", "--kubeconfig", kubeconfig)
		return stderr, code
	}
	if stderr, code := move(kubeconfig); code != 1 || !strings.Contains(stderr, "an API server of Credence answers in this cluster") {
		t.Errorf("copy while the server runs: exit code %d, %s", code, stderr)
	}
	p.must(t, "", "credence", "down", "--dir", p.Dir)

	base := strings.TrimPrefix(p.APIServer, "https://127.0.0.1:")
	cluster := startCluster(t, filepath.Join(p.Dir, "devcluster"), "--port", base)
	if stderr, code := move(kubeconfig); code != 0 {
		t.Fatalf("copy: exit code %d, %s", code, stderr)
	}
	cluster.Stop()

	file := filepath.Join(p.Dir, "config.json")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), "{", `{"storage": "cluster",`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(p.Dir, "apiserver", "etcd")); err != nil {
		t.Fatal(err)
	}
	up(t, "--dir", p.Dir)
	after := p.read(t, identitiesPath(namespace)+"/cart")
	if after.UID != before.UID || after.Status.Sub != before.Status.Sub {
		t.Errorf("uid %s, subject %s; want %s, %s", after.UID, after.Status.Sub, before.UID, before.Status.Sub)
	}
	if _, claims := claims(t, token(t, p.config(t), namespace, "cart", `{}`).Status.Token); claims["sub"] != before.Status.Sub {
		t.Errorf("a token has the subject %v, want %s", claims["sub"], before.Status.Sub)
	}
	if got := do(t, p.config(t), "GET", recordsPath, "", ""); got.Code != http.StatusOK || !strings.Contains(string(got.Body), namespace+"/cart") {
		t.Errorf("records: %d %s", got.Code, got.Body)
	}
}
