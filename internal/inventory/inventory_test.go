package inventory

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// manySecrets serves 10,000 token Secrets of 4 KiB each, for every request.
type manySecrets struct {
	t     *testing.T
	token string
}

const manyTokens = 10_000

func (m manySecrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/secrets" {
		send(w, metav1.PartialObjectMetadataList{TypeMeta: listType(r.URL.Path)})
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > cluster.PageSize {
		m.t.Errorf("a page of %q Secrets was requested", r.URL.Query().Get("limit"))
		limit = cluster.PageSize
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	for i := from; i < min(from+limit, manyTokens); i++ {
		secret := corev1.Secret{Data: map[string][]byte{v1alpha1.SecretToken: []byte(m.token), "other": bytes.Repeat([]byte("x"), 4<<10)}}
		secret.Namespace, secret.Name = "team", fmt.Sprint("secret-", i)
		secret.Annotations = map[string]string{v1alpha1.AnnotationName: "app", v1alpha1.AnnotationNamespace: "team"}
		list.Items = append(list.Items, secret)
	}
	if from+limit < manyTokens {
		list.Continue = strconv.Itoa(from + limit)
	}
	send(w, list)
}

func listType(path string) metav1.TypeMeta {
	switch path {
	case "/api/v1/pods":
		return metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	case "/api/v1/serviceaccounts":
		return metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccountList"}
	case "/api/v1/namespaces":
		return metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}
	case "/api/v1/events":
		return metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}
	default:
		return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentityList"}
	}
}

func TestSurveyKeepsNoSecrets(t *testing.T) {
	claims := testkit.Need(json.Marshal(map[string]any{"iss": "https://x", "exp": 1782910500}))(t)
	token := rawURL([]byte(`{"alg":"ES256"}`)) + "." + rawURL(claims) + "." + rawURL(bytes.Repeat([]byte("s"), 64))
	server := httptest.NewServer(manySecrets{t, token})
	defer server.Close()
	api := testkit.Need(cluster.New(&rest.Config{Host: server.URL, QPS: -1}))(t)
	before := inUse()
	found := testkit.Need(Read(t.Context(), cluster.Both{Identity: api, Workload: api}, "", nil, "", "team"))(t)
	held := inUse() - before
	if n := len(found.Identities[0].Deliveries); n != manyTokens {
		t.Fatalf("%d deliveries, want %d", n, manyTokens)
	}
	if found.Identities[0].Deliveries[7].Expires == nil {
		t.Error("the expiry of a token was not read")
	}
	// The summary of a Secret takes some hundred bytes; the Secrets themselves are more than 40 MB.
	if held > 16<<20 {
		t.Errorf("%d bytes are held for %d Secrets", held, manyTokens)
	}
	runtime.KeepAlive(found)
}

func rawURL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func inUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one leaves what pools have
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func send(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		panic(err)
	}
}
