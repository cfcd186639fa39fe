package e2e_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// serverFlags are those of an API server beside the shared plane's, with the same rights and a state of its own.
func serverFlags(t *testing.T, flags map[string]string) []string {
	t.Helper()
	return shared.serverFlags(t, flags)
}

func (p plane) serverFlags(t *testing.T, flags map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	pki := filepath.Join(p.Dir, "pki", "apiserver")
	kubeconfig := filepath.Join(pki, "kubeconfig")
	all := map[string]string{
		"secure-port": fmt.Sprint(portsOf(t)), "tls-cert-file": filepath.Join(pki, "tls.crt"), "tls-private-key-file": filepath.Join(pki, "tls.key"),
		"kubeconfig": kubeconfig, "authentication-kubeconfig": kubeconfig, "authorization-kubeconfig": kubeconfig,
		"etcd-data-dir": filepath.Join(dir, "etcd"), "keys-dir": filepath.Join(dir, "keys"), "publish-dir": filepath.Join(dir, "public"),
		"issuer": "https://another.example",
	}
	for name, value := range flags {
		all[name] = value
	}
	args := []string{"apiserver"}
	for name, value := range all {
		args = append(args, "--"+name+"="+value)
	}
	return args
}

// refuseToStart runs an API server that has to end by itself.
func refuseToStart(t *testing.T, want []string, flags map[string]string) {
	t.Helper()
	shared.refuseToStart(t, want, flags)
}

func (p plane) refuseToStart(t *testing.T, want []string, flags map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program("credence-server"), p.serverFlags(t, flags)...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("the server started: %v\n%s", err, out)
	}
	// A library may log a line after it, before the process is gone.
	for line := range strings.Lines(string(out)) {
		if !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(line, text) }) {
			return
		}
	}
	t.Errorf("no line has %q:\n%s", want, out)
}

// copyKeys returns a copy of the shared plane's keys.
func copyKeys(t *testing.T) string {
	t.Helper()
	return shared.copyKeys(t)
}

func (p plane) copyKeys(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(p.Dir, "keys"))))
	must(t, os.Chmod(dir, 0o700))
	entries := need(os.ReadDir(dir))(t)
	for _, entry := range entries {
		must(t, os.Chmod(filepath.Join(dir, entry.Name()), 0o600))
	}
	return dir
}

func TestServerRefusesToStart(t *testing.T) {
	inTurn(t)
	const clusterIssuer = "https://kubernetes.default.svc.cluster.local"
	t.Run("no issuer", func(t *testing.T) {
		refuseToStart(t, []string{"--issuer is required"}, map[string]string{"issuer": ""})
	})
	t.Run("the cluster's issuer", func(t *testing.T) {
		refuseToStart(t, []string{clusterIssuer, "service accounts", "--issuer"}, map[string]string{"issuer": clusterIssuer})
	})
	t.Run("the cluster's key", func(t *testing.T) {
		dir := copyKeys(t)
		id := putClusterKey(t, dir)
		refuseToStart(t, []string{id, "service accounts"}, map[string]string{"keys-dir": dir})
	})
	t.Run("key file that others can read", func(t *testing.T) {
		dir := copyKeys(t)
		files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no keys in %s: %v", dir, err)
		}
		must(t, os.Chmod(files[0], 0o644))
		refuseToStart(t, []string{files[0], "0644", "chmod"}, map[string]string{"keys-dir": dir})
	})
	t.Run("folder of another server", func(t *testing.T) {
		refuseToStart(t, []string{"in use by another process"}, map[string]string{"etcd-data-dir": filepath.Join(shared.Dir, "apiserver", "etcd")})
	})
}

// putClusterKey replaces an RSA key of a ring by the one that signs the cluster's service account tokens.
func putClusterKey(t *testing.T, dir string) (id string) {
	t.Helper()
	content := need(os.ReadFile(filepath.Join(shared.Dir, "devcluster", "pki", "sa.key")))(t)
	block, _ := pem.Decode(content)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		rsaKey, rsaErr := x509.ParsePKCS1PrivateKey(block.Bytes)
		if rsaErr != nil {
			t.Fatal(err, rsaErr)
		}
		key = rsaKey
	}
	private := need(x509.MarshalPKCS8PrivateKey(key))(t)
	public := need(x509.MarshalPKIXPublicKey(key.(crypto.Signer).Public()))(t)
	sum := sha256.Sum256(public)
	id = base64.RawURLEncoding.EncodeToString(sum[:])
	ring := filepath.Join(dir, "ring.json")
	document := need(os.ReadFile(ring))(t)
	header, _ := claims(t, token(t, shared.config(t), makeRSAIdentity(t), "rsa", `{}`).Status.Token)
	if !bytes.Contains(document, []byte(header.KeyID)) {
		t.Fatalf("ring.json does not name the signing key %s", header.KeyID)
	}
	must(t, os.WriteFile(ring, bytes.ReplaceAll(document, []byte(header.KeyID), []byte(id)), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, id+".pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return id
}

func makeRSAIdentity(t *testing.T) (namespace string) {
	t.Helper()
	namespace = shared.namespace(t)
	shared.create(t, namespace, "rsa", "generic", "a")
	return namespace
}

// replica starts another API server of the plane, on the same keys, and returns its configuration.
func (p plane) replica(t *testing.T, storage map[string]string) *rest.Config {
	t.Helper()
	port := portsOf(t)
	flags := map[string]string{"secure-port": fmt.Sprint(port), "issuer": p.Issuer, "keys-dir": p.copyKeys(t), "etcd-data-dir": ""}
	maps.Copy(flags, storage)
	server := start(t, "credence-server", p.serverFlags(t, flags)...)
	replica := p.config(t)
	replica.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	server.awaitReady(t, replica)
	return replica
}

// etcdOf is the embedded etcd of a plane, for a replica.
func (p plane) etcdOf() map[string]string {
	return map[string]string{"etcd-servers": "unix://" + filepath.Join(p.Dir, "apiserver", "etcd", "run", "client.sock")}
}

// A replica on an etcd that is not its own, with the same keys, serves the same objects and issues tokens that relying parties
// of the first one accept.
func TestReplicaOnExternalEtcd(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	replica := shared.replica(t, shared.etcdOf())
	var issued string
	eventually(t, func() error { // what reviews requests is ready a moment later
		got := do(t, replica, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`))
		if got.Code != 201 {
			return fmt.Errorf("a token: %d %s", got.Code, got.Body)
		}
		issued = decodeTokenRequest(t, got).Status.Token
		return nil
	})
	shared.must(t, issued, "credence", "token", "verify", "-", "--issuer", shared.Issuer, "--audience", "a", "--ca-file", shared.CAFile)
	expect(t, do(t, replica, "DELETE", identitiesPath(namespace)+"/one", "", "").is(200), "delete at the replica")
	eventually(t, func() error { return do(t, shared.config(t), "GET", identitiesPath(namespace)+"/one", "", "").is(404) })
}
