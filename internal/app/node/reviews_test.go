package node

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// kubeconfigOf writes the kubeconfig of a server, with a token.
func kubeconfigOf(t *testing.T, path, url, ofCluster string) {
	t.Helper()
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q%s}}],"users":[{"name":"u","user":{"token":"of-the-node"}}]}`, url, ofCluster)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReviews(t *testing.T) {
	unavailable, requests := false, 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		var review identityv1alpha1.NodeReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Kind != "NodeReview" || r.Header.Get("Authorization") != "Bearer of-the-node" {
			t.Errorf("%+v, %v", review, err)
		}
		switch {
		case unavailable:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method != http.MethodPost || r.URL.Path != "/apis/identity.credence.dev/v1alpha1/nodereviews" || review.Spec.Name == "unknown":
			http.NotFound(w, r)
		default:
			review.Status = identityv1alpha1.NodeReviewStatus{Allowed: true, Reason: review.Spec.UID}
			_ = json.NewEncoder(w).Encode(review)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	r := &reviews{kubeconfig: path}
	review := func(name string) (identityv1alpha1.NodeReviewStatus, error) {
		return r.Review(t.Context(), identityv1alpha1.NodeReviewSpec{Namespace: "shop", Name: name, UID: "uid"})
	}
	mustFail := func(name, text string) {
		t.Helper()
		if status, err := review(name); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v, %v, want %q", status, err, text)
		}
	}
	// The kubelet has not made it yet.
	mustFail("cart", "--kubeconfig: read how to reach the Kubernetes API")
	// Verdicts of any program that answers count for nothing.
	kubeconfigOf(t, path, strings.Replace(server.URL, "https", "http", 1), "")
	mustFail("cart", "https URL and be verified")
	kubeconfigOf(t, path, server.URL, `,"insecure-skip-tls-verify":true`)
	mustFail("cart", "https URL and be verified")
	authority, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfigOf(t, path, server.URL, `,"certificate-authority-data":`+string(authority))
	if requests > 0 {
		t.Errorf("%d requests", requests)
	}
	if status, err := review("cart"); err != nil || !status.Allowed || status.Reason != "uid" {
		t.Errorf("%+v, %v", status, err)
	}
	mustFail("unknown", "has no nodereviews, as its Credence is older than the guard, or is of another cluster")
	unavailable, requests = true, 0
	mustFail("cart", "unable to handle the request")
	if requests != 1 {
		t.Errorf("%d requests for one review", requests)
	}
}
