package storage_test

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

const etcdPrefix = "/registry/authentication.gardener.cloud"

// objects are what the copies are made of: a long name, and JSON that no program would write like that.
var objects = map[string]string{
	"/authentication.gardener.cloud/workloadidentities/shop/cart-0":                        `{"metadata": {"name":"cart-0",  "uid":"6f1c"}}`,
	"/authentication.gardener.cloud/workloadidentities/shop/" + strings.Repeat("long", 60): `{"metadata":{"uid":"é"}}`,
	"/identity.credence.dev/keyrings/workload-identities":                                  "{\n}",
}

// embeddedEtcd runs an etcd as an API server does, until the test or stop ends it.
func embeddedEtcd(t *testing.T, dir string) (client *clientv3.Client, endpoint string, stop func()) {
	t.Helper()
	etcd := testkit.Need(storage.Start(t.Context(), dir, slog.New(slog.DiscardHandler)))(t)
	client = testkit.Need(clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}}))(t)
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = client.Close()
			etcd.Stop()
		}
	}
	t.Cleanup(stop)
	return client, etcd.Endpoint(), stop
}

func contents(t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	found := testkit.Need(client.Get(t.Context(), etcdPrefix, clientv3.WithPrefix()))(t)
	got := map[string]string{}
	for _, kv := range found.Kvs {
		got[strings.TrimPrefix(string(kv.Key), etcdPrefix)] = string(kv.Value)
	}
	return got
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir := testkit.Need(os.MkdirTemp("", "credence-copy-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// storageCopy runs the command, and returns what it wrote.
func storageCopy(t *testing.T, from, to string, more ...string) (string, error) {
	t.Helper()
	arguments := append([]string{"storage", "copy", "--from", from, "--to", to}, more...)
	out, err := exec.CommandContext(t.Context(), controlplane.Program("credence-server"), arguments...).CombinedOutput()
	return string(out), err
}

// All kinds of storages hold the same after a copy, and a target that is not empty is refused.
func TestStorageCopy(t *testing.T) {
	startHost(t)
	kubeconfig := "--kubeconfig=" + filepath.Join(host.dir, "admin.kubeconfig")
	source := filepath.Join(shortDir(t), "etcd")
	client, _, stop := embeddedEtcd(t, source)
	for key, value := range objects {
		testkit.Need(client.Put(t.Context(), etcdPrefix+key, value))(t)
	}
	testkit.Need(client.Put(t.Context(), "/elsewhere", "not ours"))(t)
	if out, err := storageCopy(t, "embedded:"+source, "cluster", kubeconfig); err == nil || !strings.Contains(out, "is in use by another process") {
		t.Errorf("copy of an etcd in use: %v\n%s", err, out)
	}
	stop()

	if out, err := storageCopy(t, "embedded:"+source, "cluster", kubeconfig); err != nil || !strings.Contains(out, "3 objects copied") {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for _, record := range allRecords(t) {
		got[record.Key] = string(record.Value)
		resource, namespace := "workloadidentities.authentication.gardener.cloud", "shop"
		if strings.Contains(record.Key, "keyrings") {
			resource, namespace = "keyrings.identity.credence.dev", ""
		}
		if labels := record.Metadata.Labels; labels["storage.credence.dev/resource"] != resource || labels["storage.credence.dev/namespace"] != namespace {
			t.Errorf("%s has the labels %v", record.Key, labels)
		}
	}
	if diff := cmp.Diff(objects, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}

	if out, err := storageCopy(t, "embedded:"+source, "cluster", kubeconfig); err == nil || !strings.Contains(out, "the target is not empty: it holds 3 objects") {
		t.Errorf("copy to a cluster with records: %v\n%s", err, out)
	}
	if n := len(allRecords(t)); n != 3 {
		t.Errorf("%d records after a copy that was refused", n)
	}

	external, endpoint, _ := embeddedEtcd(t, filepath.Join(shortDir(t), "etcd"))
	if out, err := storageCopy(t, "cluster", "etcd:"+endpoint, kubeconfig); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(objects, contents(t, external)); diff != "" {
		t.Errorf("etcd (-want +got):\n%s", diff)
	}
	again := filepath.Join(shortDir(t), "etcd")
	if out, err := storageCopy(t, "etcd:"+endpoint, "embedded:"+again); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	copied, _, _ := embeddedEtcd(t, again)
	if diff := cmp.Diff(objects, contents(t, copied)); diff != "" {
		t.Errorf("embedded etcd (-want +got):\n%s", diff)
	}
}

// The TLS settings are those of the etcd: the embedded one, at the other side of the copy, has none.
func TestStorageCopyWithTLS(t *testing.T) {
	folder := shortDir(t)
	authority := testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil)
	authority.Write(t, folder, "ca")
	testkit.NewCertificate(t, x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority).Write(t, folder, "etcd")
	tls := transport.TLSInfo{CertFile: filepath.Join(folder, "etcd.crt"), KeyFile: filepath.Join(folder, "etcd.key"), TrustedCAFile: filepath.Join(folder, "ca.crt"), ClientCertAuth: true}
	endpoint := etcdWithTLS(t, tls)
	settings := []string{"--etcd-cafile", tls.TrustedCAFile, "--etcd-certfile", tls.CertFile, "--etcd-keyfile", tls.KeyFile}

	source, again := filepath.Join(folder, "source"), filepath.Join(folder, "again")
	client, _, stop := embeddedEtcd(t, source)
	for key, value := range objects {
		testkit.Need(client.Put(t.Context(), etcdPrefix+key, value))(t)
	}
	stop()
	for _, places := range [][2]string{{"embedded:" + source, "etcd:" + endpoint}, {"etcd:" + endpoint, "embedded:" + again}} {
		if out, err := storageCopy(t, places[0], places[1], settings...); err != nil || !strings.Contains(out, "3 objects copied") {
			t.Fatalf("from %s to %s: %v\n%s", places[0], places[1], err, out)
		}
	}
	copied, _, _ := embeddedEtcd(t, again)
	if diff := cmp.Diff(objects, contents(t, copied)); diff != "" {
		t.Errorf("after both copies (-want +got):\n%s", diff)
	}
}

// etcdWithTLS runs an etcd of its own, and returns its URL.
func etcdWithTLS(t *testing.T, tls transport.TLSInfo) string {
	t.Helper()
	port := testkit.Need(testkit.FreePorts(2))(t)
	address := func(port int) url.URL { return url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", port)} }
	client, peer := address(port), address(port+1)
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd := testkit.Need(embed.StartEtcd(config))(t)
	t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(patience):
		t.Fatal("etcd is not ready")
	}
	return client.String()
}

func TestStorageCopyRefuses(t *testing.T) {
	dir := shortDir(t)
	for _, c := range []struct{ from, to, want string }{
		{"", "cluster", `--from "" must be cluster, embedded:FOLDER or etcd:URL,URL`},
		{"cluster", "etcd", `--to "etcd" must be`},
		{"cluster", "cluster", "the same storage"},
		{"embedded:" + dir, "embedded:" + dir + "/", "the same storage"},
		{"embedded:" + dir, "cluster", "has no embedded etcd"},
		{"etcd:localhost:2379", "cluster", "must be an https, http or unix URL"},
	} {
		if out, err := storageCopy(t, c.from, c.to); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("from %q to %q: %v, want %q\n%s", c.from, c.to, err, c.want, out)
		}
	}
}
