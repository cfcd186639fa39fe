package storage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A copy begins when the last pod of the API server is gone, and not before: one that is ending may still store something.
func TestCopyWaitsForPodsToEnd(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/credence-system/pods" || r.URL.Query().Get("labelSelector") != "app=server" {
			t.Errorf("request %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		answer := `{"apiVersion": "v1", "kind": "PodList", "items": []}`
		if asked++; asked == 1 {
			answer = `{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "server-0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}]}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	o := options{serverPods: "credence-system/app=server"}
	if err := o.awaitEnd(t.Context(), kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}).CoreV1().RESTClient()); err != nil || asked != 2 {
		t.Errorf("%v, after %d requests", err, asked)
	}
}

func TestServerPodsMustBeChosen(t *testing.T) {
	for _, invalid := range []string{"credence-system", "credence-system/", "/app=server", "credence-system/app in"} {
		o := options{from: "cluster", to: "etcd:https://etcd:2379", serverPods: invalid}
		if _, _, err := o.check(); err == nil || !strings.Contains(err.Error(), "--server-pods") {
			t.Errorf("%q: %v", invalid, err)
		}
	}
}
