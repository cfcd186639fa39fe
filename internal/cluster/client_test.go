package cluster_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// server is an API that answers requests by their method and path, and records them.
type server struct {
	mu       sync.Mutex
	answers  map[string]func(*http.Request) (int, any)
	requests []string
	bodies   []string
	accepts  []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.bodies = append(s.bodies, strings.TrimSpace(string(body)))
	s.accepts = append(s.accepts, r.Header.Get("Accept"))
	answer := s.answers[r.Method+" "+r.URL.Path]
	s.mu.Unlock()
	code, object := http.StatusNotFound, any(failure(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
	if answer != nil {
		code, object = answer(r)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// with has a request answered.
func (s *server) with(request string, code int, object any) *server {
	s.answers[request] = func(*http.Request) (int, any) { return code, object }
	return s
}

func start(t *testing.T) (*server, *cluster.API) {
	t.Helper()
	s := &server{answers: map[string]func(*http.Request) (int, any){}}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	api := testkit.Need(cluster.New(&rest.Config{Host: listening.URL, QPS: -1}))(t)
	return s, api
}

// failure is the answer to a request that fails.
func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return metav1.Status{TypeMeta: kind, Status: metav1.StatusFailure, Reason: reason, Code: code, Message: message}
}

func TestRequestsNameTheirPlace(t *testing.T) {
	ctx := t.Context()
	at := cluster.Place{API: "/apis/apps/v1", Namespace: "shop", Resource: "deployments", Name: "cart"}
	node := cluster.Place{Resource: "nodes", Name: "n"}
	secrets := cluster.Place{Namespace: "shop", Resource: "secrets"}
	logs := cluster.Place{Namespace: "shop", Resource: "pods", Name: "cart-0", Within: "log"}
	const path, sent = "/apis/apps/v1/namespaces/shop/deployments/cart", `{"kind":"Deployment"}`
	object := map[string]string{"kind": "Deployment"}
	manager := cluster.FieldManager("credence")
	for name, test := range map[string]struct {
		do            func(*cluster.API) error
		request, body string
	}{
		"get":       {func(a *cluster.API) error { return a.Get(ctx, nil, at) }, "GET " + path, ""},
		"get, core": {func(a *cluster.API) error { return a.Get(ctx, nil, node) }, "GET /api/v1/nodes/n", ""},
		"update":    {func(a *cluster.API) error { return a.Update(ctx, at, object, nil) }, "PUT " + path, sent},
		"patch":     {func(a *cluster.API) error { return a.Patch(ctx, at, object, nil, cluster.DryRun) }, "PATCH " + path + "?dryRun=All", sent},
		"delete":    {func(a *cluster.API) error { return a.Delete(ctx, at) }, "DELETE " + path, ""},
		"create": {
			func(a *cluster.API) error { return a.Create(ctx, secrets, object, nil, manager) },
			"POST /api/v1/namespaces/shop/secrets?fieldManager=credence", sent,
		},
		"of a subresource": {func(a *cluster.API) error { return a.Get(ctx, nil, logs) }, "GET /api/v1/namespaces/shop/pods/cart-0/log", ""},
	} {
		s, api := start(t)
		method, path, _ := strings.Cut(test.request, " ")
		path, _, _ = strings.Cut(path, "?")
		s.with(method+" "+path, http.StatusOK, map[string]string{})
		if err := test.do(api); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{test.request}, s.requests) + cmp.Diff([]string{test.body}, s.bodies); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An object of a newer version is not written over, and an older server must refuse fields that it would drop.
func TestNoFieldIsDropped(t *testing.T) {
	const path = "/apis/identity.credence.dev/v1alpha1/keyrings/ring"
	at := cluster.Place{API: "/apis/identity.credence.dev/v1alpha1", Resource: "keyrings", Name: "ring"}
	for stored, want := range map[string]error{
		`{"metadata": {"name": "ring"}, "spec": {}, "status": {"later": 1}}`: nil,
		`{"metadata": {"name": "ring"}, "spec": {"later": 1}}`:               cluster.ErrNewer,
	} {
		s, api := start(t)
		s.with("GET "+path, http.StatusOK, json.RawMessage(stored)).with("PUT "+path, http.StatusOK, map[string]string{})
		err := api.Update(t.Context(), at, &identityv1alpha1.KeyRing{}, nil)
		wrote := slices.Contains(s.requests, "PUT "+path+"?fieldValidation=Strict")
		if !errors.Is(err, want) || wrote != (want == nil) || want != nil && !strings.Contains(err.Error(), "(spec.later)") {
			t.Errorf("%s: %v, requests %q", stored, err, s.requests)
		}
	}
	s, api := start(t)
	list := json.RawMessage(`{"items": [{"metadata": {"namespace": "shop", "name": "cart"}, "spec": {"later": 1}}]}`)
	s.with("GET /apis/authentication.gardener.cloud/v1alpha1/workloadidentities", http.StatusOK, list)
	err := cluster.Each(t.Context(), api, cluster.Identities(""), func(*cluster.Exact[v1alpha1.WorkloadIdentity]) {})
	if !errors.Is(err, cluster.ErrNewer) || !strings.Contains(err.Error(), "shop/cart: the object has fields that this program does not know (spec.later)") {
		t.Errorf("a list: %v", err)
	}
}

// A name can't lead a request to another place.
func TestNamesAreOneSegmentOfThePath(t *testing.T) {
	s, api := start(t)
	for _, name := range []string{"..", "a/b", "a%b"} {
		if err := api.Get(t.Context(), nil, cluster.Place{Resource: "nodes", Name: name}); err == nil {
			t.Errorf("an object %q was read", name)
		}
		if err := cluster.CheckName(name); err == nil || !strings.Contains(err.Error(), "is not a name") {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if len(s.requests) != 0 {
		t.Errorf("requested %q", s.requests)
	}
	if err := cluster.CheckName(""); err == nil {
		t.Error("an empty name is a name")
	}
	testkit.Expect(t, cluster.CheckName("cart"))
}

// A request that fails is sent once, and its error is that of the API.
func TestFailuresAreThoseOfTheAPI(t *testing.T) {
	s, api := start(t)
	node := cluster.Place{Resource: "nodes", Name: "n"}
	s.with("GET /api/v1/nodes/n", http.StatusServiceUnavailable, failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd is away"))
	err := api.Get(t.Context(), nil, node)
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "etcd is away") || len(s.requests) != 1 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
	s.with("GET /api/v1/nodes/list", http.StatusOK, []string{})
	var object metav1.PartialObjectMetadata
	err = api.Get(t.Context(), &object, cluster.Place{Resource: "nodes", Name: "list"})
	if err == nil || !strings.Contains(err.Error(), "read the answer to /api/v1/nodes/list") {
		t.Errorf("an answer that is not an object: %v", err)
	}
}

func TestTokensAreRequestedOfTheIdentity(t *testing.T) {
	s, api := start(t)
	const identity = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/shop/workloadidentities/cart"
	s.with("POST "+identity+"/token", http.StatusCreated, v1alpha1.TokenRequest{Status: v1alpha1.TokenRequestStatus{Token: "t"}})
	got, err := api.CreateToken(t.Context(), "shop", "cart", v1alpha1.TokenRequestSpec{})
	if err != nil || got.Status.Token != "t" || got.Kind != "TokenRequest" || got.APIVersion != "authentication.gardener.cloud/v1alpha1" {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(s.bodies[0], `"kind":"TokenRequest"`) {
		t.Errorf("sent %s", s.bodies[0])
	}
	s.with("GET "+identity, http.StatusOK, v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{UID: "u"}})
	if got, err := api.Identity(t.Context(), "shop", "cart"); err != nil || got.UID != "u" {
		t.Errorf("%+v, %v", got, err)
	}
	account := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	s.with("GET /api/v1/namespaces/shop/serviceaccounts/cart", http.StatusOK, account)
	if uid, err := api.ServiceAccountUID(t.Context(), "shop", "cart"); err != nil || uid != "a" {
		t.Errorf("%s, %v", uid, err)
	}
}
