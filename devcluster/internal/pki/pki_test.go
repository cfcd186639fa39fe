package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEnsureKeepsWhatIsGood(t *testing.T) {
	dir := complete(t)
	before := contents(t, dir)

	ensure(t, dir, start.Add(leafLifetime-renewBefore))

	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("files changed though every certificate had 30 days left (-before +after):\n%s", diff)
	}
}

func TestEnsureRenewsLeavesOnly(t *testing.T) {
	dir := complete(t)
	before := contents(t, dir)

	later := start.Add(leafLifetime - renewBefore + time.Second)
	files := ensure(t, dir, later)

	after := contents(t, dir)
	for name, content := range before {
		kept := name == "ca.crt" || name == "ca.key" || name == "front-proxy-ca.crt" || name == "front-proxy-ca.key" ||
			name == "sa.key" || name == "sa.pub"
		if same := after[name] == content; same != kept {
			t.Errorf("%s: same content %t, want %t", name, same, kept)
		}
	}
	verifyAll(t, files, later)
}

func TestEnsureMendsAHalfWrittenPair(t *testing.T) {
	dir := complete(t)
	files := layout(dir)
	if err := os.Remove(files.APIServer.Key); err != nil {
		t.Fatal(err)
	}
	// The key of another certificate: a crash between key and certificate leaves this.
	other, err := os.ReadFile(files.AdminClient.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.FrontProxyClient.Key, other, 0o600); err != nil {
		t.Fatal(err)
	}

	verifyAll(t, ensure(t, dir, start), start)
}

func TestEnsureSignsAnewUnderANewAuthority(t *testing.T) {
	dir := complete(t)
	files := layout(dir)
	for _, path := range []string{files.Authority.Cert, files.Authority.Key} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	verifyAll(t, ensure(t, dir, start), start)
}

func TestCertificatesVerify(t *testing.T) {
	files := layout(complete(t))
	verifyAll(t, files, start)

	cert, err := readCertificate(files.APIServer.Cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	admin, err := readCertificate(files.AdminClient.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := admin.Subject.String(), "CN=credence-admin,O=system:masters"; got != want {
		t.Errorf("admin is %q, want %q", got, want)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensure(t, dir, start)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: mode %v, error %v; want 0700", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		want := fs.FileMode(0o644)
		if strings.HasSuffix(entry.Name(), ".key") {
			want = 0o600
		}
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", entry.Name(), info.Mode().Perm(), want)
		}
	}
	if len(entries) != 18 {
		t.Errorf("%d files, want 18 (8 pairs, sa.key, sa.pub)", len(entries))
	}
}

func TestEnsureRefuses(t *testing.T) {
	tests := map[string]struct {
		damage func(t *testing.T, files Files)
		now    time.Time
		want   string
	}{
		"a key that others can read": {
			damage: func(t *testing.T, files Files) {
				if err := os.Chmod(files.ServiceAccount.Key, 0o640); err != nil {
					t.Fatal(err)
				}
			},
			now: start, want: "sa.key has mode 0640",
		},
		"an authority near its end": {
			damage: func(*testing.T, Files) {},
			now:    start.Add(authorityLifetime - renewBefore + time.Second), want: "ca.crt ends at 2039-12-30T00:00:00Z",
		},
		"an authority with another's key": {
			damage: func(t *testing.T, files Files) {
				if err := os.Rename(files.FrontProxy.Key, files.Authority.Key); err != nil {
					t.Fatal(err)
				}
			},
			now: start, want: "is not the key of",
		},
		"an authority without its key": {
			damage: func(t *testing.T, files Files) {
				if err := os.Remove(files.Authority.Key); err != nil {
					t.Fatal(err)
				}
			},
			now: start, want: "ca.key: no such file",
		},
		"an invalid certificate": {
			damage: func(t *testing.T, files Files) {
				if err := os.WriteFile(files.APIServer.Cert, []byte("-----BEGIN"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			now: start, want: "apiserver.crt: no PEM block",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := complete(t)
			test.damage(t, layout(dir))
			_, err := Ensure(dir, serviceIP, test.now)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

var serviceIP = net.IPv4(10, 96, 0, 1)

func ensure(t *testing.T, dir string, now time.Time) Files {
	t.Helper()
	files, err := Ensure(dir, serviceIP, now)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// complete is a directory with a PKI made at start, around one RSA key: they take long to make.
func complete(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeKey(layout(dir).ServiceAccount.Key, rsaKey()); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, start)
	return dir
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(raw)
	}
	return all
}

// verifyAll checks every leaf as its peer would: chain, use and key.
func verifyAll(t *testing.T, files Files, now time.Time) {
	t.Helper()
	for _, leaf := range []struct {
		pair, by Pair
		usage    x509.ExtKeyUsage
	}{
		{files.APIServer, files.Authority, x509.ExtKeyUsageServerAuth},
		{files.ControllerManager, files.Authority, x509.ExtKeyUsageServerAuth},
		{files.KubeletClient, files.Authority, x509.ExtKeyUsageClientAuth},
		{files.AdminClient, files.Authority, x509.ExtKeyUsageClientAuth},
		{files.ControllerManagerClient, files.Authority, x509.ExtKeyUsageClientAuth},
		{files.FrontProxyClient, files.FrontProxy, x509.ExtKeyUsageClientAuth},
	} {
		authority, err := readCertificate(leaf.by.Cert)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := readCertificate(leaf.pair.Cert)
		if err != nil {
			t.Fatal(err)
		}
		key, err := readKey(leaf.pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(authority)
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{leaf.usage}}
		if _, err := cert.Verify(options); err != nil {
			t.Errorf("%s: %v", leaf.pair.Cert, err)
		}
		if !sameKey(key.Public(), cert.PublicKey) {
			t.Errorf("%s is not the key of %s", leaf.pair.Key, leaf.pair.Cert)
		}
	}
}
