package storage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/test/controlplane"
)

const recordsPath = "/apis/storage.credence.dev/v1/records"

// host is the cluster that all tests store in, one after the other.
var host struct {
	*kubernetes.Clientset
	*controlplane.ControlPlane
	dir       string
	arguments []string
	etcd      string // endpoint
	requests  *requests
}

// quiet keeps kube-apiserver from writing by itself: the suite counts resource versions.
var quiet = []string{"--apiserver-arg=--etcd-compaction-interval=0", "--apiserver-arg=--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false"}

// startHost starts a cluster with the definition of records.
func startHost(t *testing.T, arguments ...string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "credence-storage-") // short, for etcd's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	host.dir, host.arguments = dir, append(append(arguments, quiet...), "--port", freePort(t))
	startAgain(t)
	plane := host.ControlPlane
	counting := &requests{}
	config := rest.CopyConfig(plane.Admin)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counting.next = next
		return counting
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	host.Clientset, host.requests, host.etcd = client, counting, "unix://"+filepath.Join(dir, "run", "client.sock")
	if err := install(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// startAgain starts the host on what it has stored.
func startAgain(t *testing.T) {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), host.dir, host.arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Stop)
	host.ControlPlane = plane
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// install makes the definition of records, without the policy that lets the API server alone write them.
func install(ctx context.Context, config *rest.Config) error {
	objects, err := deploy.Manifests()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" || object.GetName() != "records.storage.credence.dev" {
			continue
		}
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		if _, err := client.Resource(definitions).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return eventually(ctx, func() error { return records().Error() })
}

func eventually(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func records() rest.Result {
	return host.CoreV1().RESTClient().Get().AbsPath(recordsPath).Do(context.Background())
}

// empty takes all records away.
func empty(t *testing.T) {
	t.Helper()
	if err := host.CoreV1().RESTClient().Delete().AbsPath(recordsPath).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	err := eventually(t.Context(), func() error {
		body, err := records().Raw()
		if err != nil {
			return err
		}
		list := &unstructured.UnstructuredList{}
		if err := json.Unmarshal(body, list); err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d records are left", len(list.Items))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var written atomic.Int64

// increaseRV writes something else than a record, and returns the resource version of it.
func increaseRV(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	maps := host.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("written-%d", written.Add(1))}}
	stored, err := maps.Create(ctx, configMap, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseInt(stored.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{host.etcd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// requests counts the lists of records that pass through it.
type requests struct {
	next http.RoundTripper

	mu           sync.Mutex
	pages, ahead int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); request.Method == http.MethodGet && request.URL.Path == recordsPath && query.Get("watch") == "" {
		r.mu.Lock()
		if token, err := base64.RawURLEncoding.DecodeString(query.Get("continue")); err == nil && bytes.Contains(token, []byte(`"pods0."`)) {
			r.ahead++
		} else {
			r.pages++
		}
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

func (r *requests) reset() (pages, ahead int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pages, ahead = r.pages, r.ahead
	r.pages, r.ahead = 0, 0
	return pages, ahead
}

func allRecords(t *testing.T) []storedRecord {
	t.Helper()
	body, err := records().Raw()
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []storedRecord }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
