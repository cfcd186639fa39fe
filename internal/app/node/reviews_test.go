package node

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/node/guard"
	"github.com/credence-id/credence/test/testkit"
)

// kubeconfigOf writes the kubeconfig of a server, with a token.
func kubeconfigOf(t *testing.T, path, url, ofCluster string) {
	t.Helper()
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q%s}}],"users":[{"name":"u","user":{"token":"of-the-node"}}]}`, url, ofCluster)
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
}

// authorityOf is the certificate authority of a server, for kubeconfigOf.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	authority := testkit.Need(json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))(t)
	return `,"certificate-authority-data":` + string(authority)
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
	kubeconfigOf(t, path, server.URL, authorityOf(t, server))
	if requests > 0 {
		t.Errorf("%d requests", requests)
	}
	if status, err := review("cart"); err != nil || !status.Allowed || status.Reason != "uid" {
		t.Errorf("%+v, %v", status, err)
	}
	mustFail("unknown", "has no nodereviews: its Credence is older than the guard, or its identities are in another cluster")
	unavailable, requests = true, 0
	mustFail("cart", "unable to handle the request")
	if requests != 1 {
		t.Errorf("%d requests for one review", requests)
	}
}

// lines are what is logged.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A guard of a cluster without reviews, as one whose identities are in another cluster, serves, and its log has at the start that no pod of the API will
// have a verdict. An API that is away, and a kubeconfig that is not there yet, are no such thing.
func TestGuardWithoutReviews(t *testing.T) {
	const list = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"identity.credence.dev/v1alpha1","resources":[{"name":%q}]}`
	for name, test := range map[string]struct {
		code     int
		body     string
		unserved bool
	}{
		"another cluster": {404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, true},
		"older":           {200, fmt.Sprintf(list, "keyrings"), true},
		"served":          {200, fmt.Sprintf(list, "nodereviews"), false},
		"unavailable":     {503, "service unavailable", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodPost: // by its roles, before it looks what it serves
					w.WriteHeader(http.StatusForbidden)
					_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
				case r.URL.Path != "/apis/identity.credence.dev/v1alpha1":
					t.Errorf("%s %s", r.Method, r.URL.Path)
				default:
					w.WriteHeader(test.code)
					_, _ = fmt.Fprint(w, test.body)
				}
			}))
			defer server.Close()
			path := filepath.Join(t.TempDir(), "kubelet.conf")
			r := &reviews{kubeconfig: path}
			testkit.Expect(t, r.served(t.Context()), "without a kubeconfig")
			kubeconfigOf(t, path, server.URL, authorityOf(t, server))
			if err := r.served(t.Context()); (err != nil) != test.unserved {
				t.Errorf("%v, want an error: %v", err, test.unserved)
			}
			const missing = "has no nodereviews"
			if _, err := r.Review(t.Context(), identityv1alpha1.NodeReviewSpec{}); err == nil || strings.Contains(err.Error(), missing) != test.unserved {
				t.Errorf("a review: %v, want %q: %v", err, missing, test.unserved)
			}
			if !test.unserved {
				return
			}
			folder, err := os.MkdirTemp("", "guard") // paths of sockets are short
			testkit.Must(t, err)
			defer func() { _ = os.RemoveAll(folder) }()
			log, ended := make(lines, 100), make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			config := Guard{Listen: filepath.Join(folder, "guard.sock"), Runtime: filepath.Join(folder, "containerd.sock"), Kubeconfig: path}
			config.Config = guard.Config{Node: "node-1", KubeletDir: "/var/lib/kubelet", Template: guard.Restricted, Log: slog.New(slog.NewTextHandler(log, nil))}
			go func() { ended <- RunGuard(ctx, config) }()
			for line := range log {
				if strings.Contains(line, "level=ERROR") {
					if want := "no pod of the API is started until this is mended"; !strings.Contains(line, want) || !strings.Contains(line, "leaves --kubeconfig out") {
						t.Errorf("the log has %s, want %q", line, want)
					}
					break
				}
			}
			select {
			case err := <-ended:
				t.Errorf("the guard has ended: %v", err)
			default:
			}
			stop()
			testkit.Expect(t, <-ended)
		})
	}
}
