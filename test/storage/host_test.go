package storage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	"github.com/credence-id/credence/test/testkit"
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
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := testkit.Need(testkit.FreePorts(1))(t)
	host.dir, host.arguments = dir, append(append(arguments, quiet...), "--port", strconv.Itoa(port))
	startAgain(t)
	plane := host.ControlPlane
	counting := &requests{}
	config := rest.CopyConfig(plane.Admin)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counting.next = next
		return counting
	})
	client := testkit.Need(kubernetes.NewForConfig(config))(t)
	host.Clientset, host.requests, host.etcd = client, counting, "unix://"+filepath.Join(dir, "run", "client.sock")
	testkit.Must(t, install(t.Context(), config))
	testkit.Wait(t, func(context.Context) error { return records().Error() })
	settled(t)
}

// settled waits until the controllers of a new cluster have made what they make at its beginning: then nothing is written but by tests.
func settled(t *testing.T) {
	t.Helper()
	etcd, last, since := etcd(t), int64(0), time.Now()
	testkit.Wait(t, func(ctx context.Context) error {
		accounts, err := host.CoreV1().ServiceAccounts("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
		if err != nil {
			return err
		}
		authorities, err := host.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kube-root-ca.crt"})
		if err != nil {
			return err
		}
		found, err := etcd.Get(ctx, "none")
		if err != nil {
			return err
		}
		if found.Header.Revision != last {
			last, since = found.Header.Revision, time.Now()
		}
		if len(accounts.Items) < 4 || len(authorities.Items) < 4 || time.Since(since) < time.Second {
			return fmt.Errorf("%d accounts and %d authorities, and revision %d since %s", len(accounts.Items), len(authorities.Items), last, since)
		}
		return nil
	})
}

// startAgain starts the host on what it has stored.
func startAgain(t *testing.T) {
	t.Helper()
	plane := testkit.Need(controlplane.Start(t.Context(), host.dir, host.arguments...))(t)
	t.Cleanup(plane.Stop)
	host.ControlPlane = plane
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
	return nil
}

func records() rest.Result {
	return host.CoreV1().RESTClient().Get().AbsPath(recordsPath).Do(context.Background())
}

// empty takes all records away.
func empty(t *testing.T) {
	t.Helper()
	testkit.Must(t, host.CoreV1().RESTClient().Delete().AbsPath(recordsPath).Do(t.Context()).Error())
	testkit.Wait(t, func(context.Context) error {
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
}

var written atomic.Int64

// increaseRV writes something else than a record, and returns the resource version of it.
func increaseRV(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	maps := host.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("written-%d", written.Add(1))}}
	stored := testkit.Need(maps.Create(ctx, configMap, metav1.CreateOptions{}))(t)
	return testkit.Need(strconv.ParseInt(stored.ResourceVersion, 10, 64))(t)
}

func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client := testkit.Need(clientv3.New(clientv3.Config{Endpoints: []string{host.etcd}}))(t)
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
	body := testkit.Need(records().Raw())(t)
	var list struct{ Items []storedRecord }
	testkit.Must(t, json.Unmarshal(body, &list))
	return list.Items
}
