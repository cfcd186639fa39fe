package workloadidentity_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// cluster is an API server that issues tokens: to users whose token is geheim, for identities that exist.
type cluster struct {
	t      *testing.T
	server *httptest.Server

	mu         sync.Mutex
	now        time.Time
	identities map[string]bool
	accounts   map[string]types.UID
	issued     []v1alpha1.TokenRequestSpec
	users      []string
	// failure is what every request gets.
	failure *metav1.Status
	// change changes an answer.
	change func(*v1alpha1.TokenRequest)
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, now: noon, identities: map[string]bool{"team/deployer": true}, accounts: map[string]types.UID{"team/robot": "uid-1"}}
	c.server = httptest.NewTLSServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			c.t.Error(err)
		}
	}
	fail := func(status metav1.Status) {
		status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
		answer(int(status.Code), status)
	}
	identities := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "workloadidentities"}
	c.users = append(c.users, r.Header.Get("Authorization"))
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case c.failure != nil:
		fail(*c.failure)
	case r.Header.Get("Authorization") != "Bearer geheim":
		fail(apierrors.NewUnauthorized("Unauthorized").ErrStatus)
	case r.Method == http.MethodGet && len(path) == 6 && strings.Join(path[:3], "/") == "api/v1/namespaces" && path[4] == "serviceaccounts":
		uid, ok := c.accounts[path[3]+"/"+path[5]]
		if !ok {
			fail(apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, path[5]).ErrStatus)
			return
		}
		answer(http.StatusOK, corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: path[5], Namespace: path[3], UID: uid},
		})
	case r.Method == http.MethodPost && len(path) == 8 && strings.Join(path[:4], "/") == "apis/authentication.gardener.cloud/v1alpha1/namespaces" &&
		path[5] == "workloadidentities" && path[7] == "token":
		if !c.identities[path[4]+"/"+path[6]] {
			fail(apierrors.NewNotFound(identities, path[6]).ErrStatus)
			return
		}
		var request v1alpha1.TokenRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			c.t.Error(err)
		}
		life := time.Hour
		if d := request.Spec.Duration; d != nil {
			life = d.Duration
		}
		if o := request.Spec.ContextObject; o != nil && c.accounts[o.Namespace+"/"+o.Name] != o.UID {
			fail(apierrors.NewConflict(identities, path[6], errors.New("the context object has another uid")).ErrStatus)
			return
		}
		c.issued = append(c.issued, request.Spec)
		request.Status = v1alpha1.TokenRequestStatus{Token: fmt.Sprintf("token-%d", len(c.issued)), ExpirationTimestamp: metav1.NewTime(c.now.Add(life))}
		if c.change != nil {
			c.change(&request)
		}
		w.Header().Add("Warning", `299 - "shortened"`)
		answer(http.StatusCreated, request)
	default:
		fail(apierrors.NewGenericServerResponse(404, "post", schema.GroupResource{}, "", "", 0, true).ErrStatus)
	}
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *cluster) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
}

// choice is a kubeconfig for the cluster, with such a user.
func (c *cluster) choice(user string) kubeconfig.Choice {
	c.t.Helper()
	ca, err := json.Marshal(c.ca())
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "config")
	c.put(path, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %s}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "asker", "namespace": "team"}}],
		"users": [{"name": "asker", "user": %s}]}`, c.server.URL, ca, user))
	return kubeconfig.Choice{Path: path, Environment: func(string) string { return "" }}
}

// pod is the environment of a pod in the cluster.
func (c *cluster) pod() kubeconfig.Choice {
	c.t.Helper()
	folder := c.t.TempDir()
	c.put(filepath.Join(folder, "token"), "geheim")
	c.put(filepath.Join(folder, "namespace"), "team")
	c.put(filepath.Join(folder, "ca.crt"), string(c.ca()))
	u, err := url.Parse(c.server.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	return kubeconfig.Choice{PodFolder: folder, Environment: func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port()}[name]
	}}
}

func (c *cluster) put(path, text string) {
	c.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}
