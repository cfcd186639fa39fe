package survey

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// An object that was created after the list was read does not count as missing.
func TestCreatedAfterTheList(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/shop/serviceaccounts/cart" {
			_, _ = io.WriteString(w, `{"metadata":{"namespace":"shop","name":"cart"}}`) // a test's own connection
			return
		}
		_, _ = io.WriteString(w, `{"items":[]}`)
	}))
	defer server.Close()
	api := testkit.Need(cluster.New(&rest.Config{Host: server.URL}))(t)
	for optional, found := range map[bool]bool{false: true, true: false} {
		read := listed(api, cluster.Listing{Namespace: "shop", Resource: "serviceaccounts"}, func(a *corev1.ServiceAccount) *corev1.ServiceAccount { return a }, optional)
		if _, err := read(t.Context(), "shop", "cart"); (err == nil) != found {
			t.Errorf("optional %v: %v", optional, err)
		}
	}
}
