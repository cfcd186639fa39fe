package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

// configurations is an API of webhook configurations, by their URLs.
type configurations struct {
	mu       sync.Mutex
	objects  map[string]map[string]any
	readOnly bool
	down     bool
}

func (c *configurations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, reason string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	object, found := c.objects[r.URL.Path]
	switch {
	case c.down:
		refuse(500, "InternalError")
		return
	case !found:
		refuse(404, "NotFound")
		return
	case r.Method == http.MethodPut && c.readOnly:
		refuse(403, "Forbidden")
		return
	case r.Method == http.MethodPut:
		var put map[string]any
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			refuse(400, "BadRequest")
			return
		}
		version := object["metadata"].(map[string]any)["resourceVersion"].(string)
		if put["metadata"].(map[string]any)["resourceVersion"] != version {
			refuse(409, "Conflict")
			return
		}
		// As Kubernetes validates the path of a Service.
		service := put["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["service"].(map[string]any)
		for segment := range strings.SplitSeq(strings.TrimPrefix(service["path"].(string), "/"), "/") {
			if len(validation.IsDNS1123Subdomain(segment)) > 0 {
				refuse(422, "Invalid")
				return
			}
		}
		next, _ := strconv.Atoi(version)
		put["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(next + 1)
		c.objects[r.URL.Path], object = put, put
	}
	_ = json.NewEncoder(w).Encode(object)
}

const gmsaConfiguration = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-credence-gmsa"

// path returns the path that the API server would request.
func (c *configurations) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service()["path"].(string)
}

func (c *configurations) service() map[string]any {
	return c.objects[gmsaConfiguration]["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["service"].(map[string]any)
}

// pathsWorld is two replicas by one clock.
type pathsWorld struct {
	*configurations
	replicas [2]*Paths
	now      time.Time
}

func newPathsWorld(t *testing.T) *pathsWorld {
	t.Helper()
	w := &pathsWorld{now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), configurations: &configurations{objects: map[string]map[string]any{gmsaConfiguration: {
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
		"metadata": map[string]any{"name": "zz-credence-gmsa", "resourceVersion": "1", "annotations": map[string]any{"kept": "yes"}},
		"webhooks": []any{map[string]any{"name": "expander.gmsa.credence.dev", "unknownField": "kept",
			"clientConfig": map[string]any{"service": map[string]any{"name": "credence-webhook", "namespace": "credence-system", "path": "/mutate"}}}},
	}}}}
	server := httptest.NewServer(w.configurations)
	t.Cleanup(server.Close)
	client := testkit.Need(dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1}))(t)
	var mu sync.Mutex
	secrets := byte(0)
	random := readerFunc(func(into []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		secrets++
		for i := range into {
			into[i] = secrets
		}
		return len(into), nil
	})
	for i := range w.replicas {
		w.replicas[i] = NewPaths(client, 10*time.Minute, func() time.Time { return w.now }, random, slog.New(slog.DiscardHandler))
	}
	return w
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// ask returns the answer of a replica at a path, and the path that next got.
func (w *pathsWorld) ask(replica int, path string) (int, string) {
	recorder := httptest.NewRecorder()
	w.replicas[replica].Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })).
		ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, nil))
	return recorder.Code, recorder.Body.String()
}

func (w *pathsWorld) read(t *testing.T, replica int) {
	t.Helper()
	w.now = w.now.Add(readPathsPause) // so that no read waits
	testkit.Must(t, w.replicas[replica].reread(t.Context()))
}

// answers fails the test unless a replica answers at a path, or does not.
func (w *pathsWorld) answers(t *testing.T, replica int, path string, want bool) {
	t.Helper()
	w.now = w.now.Add(readPathsPause)
	code, body := w.ask(replica, path)
	if got := code == http.StatusOK && body == MutatePath; got != want || !got && code != http.StatusNotFound {
		t.Errorf("replica %d at %s: HTTP %d %s, answered: want %t", replica, path, code, body, want)
	}
}

func TestReviewsAreAnsweredAtSecretPathsAlone(t *testing.T) {
	w := newPathsWorld(t)
	if err := w.replicas[0].Ready(); err == nil {
		t.Error("ready before anything was read")
	}
	w.read(t, 0)
	first := w.path()
	if len(first) < 40 || !strings.HasSuffix(first, MutatePath) || w.replicas[0].Ready() != nil {
		t.Fatalf("path %s, %v", first, w.replicas[0].Ready())
	}
	for replica := range w.replicas { // the second one has read nothing yet
		w.answers(t, replica, first, true)
		for _, wrong := range []string{"/", "/mutate", "/" + strings.Repeat("a", 52) + "/mutate", "/x" + first, first[:len(first)-8] + "B/mutate"} {
			w.answers(t, replica, wrong, false)
		}
	}
	w.now = w.now.Add(10 * time.Minute)
	w.read(t, 1)
	second := w.path()
	if second == first {
		t.Fatal("it was not replaced")
	}
	for replica := range w.replicas {
		w.answers(t, replica, second, true)
		w.answers(t, replica, first, true)
	}
	w.now = w.now.Add(time.Minute)
	for replica := range w.replicas {
		w.read(t, replica)
		w.answers(t, replica, second, true)
		w.answers(t, replica, first, false)
	}
	if got := w.objects[gmsaConfiguration]; got["metadata"].(map[string]any)["annotations"].(map[string]any)["kept"] != "yes" || got["webhooks"].([]any)[0].(map[string]any)["unknownField"] != "kept" {
		t.Errorf("fields were lost: %v", got)
	}

	// An admin applies the manifest again.
	w.service()["path"] = "/mutate"
	w.answers(t, 0, "/mutate", false)
	w.read(t, 0)
	w.answers(t, 1, w.path(), true)
}

// An upgrade adds a webhook to a configuration, without a path. The others are answered where API servers know them.
func TestAWebhookIsAdded(t *testing.T) {
	w := newPathsWorld(t)
	w.read(t, 0)
	first := w.path()
	webhooks := w.objects[gmsaConfiguration]["webhooks"].([]any)
	w.objects[gmsaConfiguration]["webhooks"] = append(webhooks, map[string]any{"name": "authorizer.gmsa.credence.dev",
		"clientConfig": map[string]any{"service": map[string]any{"name": "credence-webhook", "namespace": "credence-system"}}})
	w.read(t, 1)
	if w.path() == first {
		t.Fatal("the paths are not made one")
	}
	for replica := range w.replicas {
		w.answers(t, replica, w.path(), true)
		w.answers(t, replica, first, true)
	}
	w.now = w.now.Add(time.Minute)
	for replica := range w.replicas {
		w.read(t, replica)
		w.answers(t, replica, first, false)
	}
}

// Of two replicas that find a path due at once, one replaces it.
func TestReplicasReplaceAPathOnce(t *testing.T) {
	w := newPathsWorld(t)
	var both sync.WaitGroup
	for replica := range w.replicas {
		both.Go(func() { _ = w.replicas[replica].reread(t.Context()) })
	}
	both.Wait()
	if version := w.objects[gmsaConfiguration]["metadata"].(map[string]any)["resourceVersion"]; version != "2" {
		t.Errorf("it was written until version %v, want 2", version)
	}
	for replica := range w.replicas {
		w.answers(t, replica, w.path(), true)
	}
}

func TestAPathThatCanNotBeWrittenIsSaid(t *testing.T) {
	w := newPathsWorld(t)
	w.readOnly = true
	_ = w.replicas[0].reread(t.Context())
	if err := w.replicas[0].Ready(); err == nil || !strings.Contains(err.Error(), "zz-credence-gmsa: install deploy/options/review-paths.yaml") {
		t.Errorf("ready: %v", err)
	}
	w.answers(t, 0, "/mutate", false)
}

// A read that fails makes no replica unready as long as no path can have been replaced that it does not know.
func TestReadyThroughFailedReads(t *testing.T) {
	w := newPathsWorld(t)
	replica := w.replicas[0]
	fail := func() {
		w.now = w.now.Add(readPathsPause)
		if err := replica.reread(t.Context()); err == nil {
			t.Fatal("the read has not failed")
		}
	}
	w.down = true
	fail()
	if replica.Ready() == nil {
		t.Error("ready before a path is known")
	}
	w.down = false
	w.read(t, 0)
	w.down = true
	fail()
	testkit.Expect(t, replica.Ready(), "after a read that failed")
	w.answers(t, 0, w.path(), true)
	w.now = w.now.Add(time.Minute)
	if err := replica.Ready(); err == nil || !strings.Contains(err.Error(), "zz-credence-gmsa") {
		t.Errorf("after a minute without one that did not: %v", err)
	}
	w.down = false
	w.read(t, 0)
	testkit.Expect(t, replica.Ready(), "after a good read")

	// A path that is known, and can't be replaced.
	w.readOnly = true
	for range 3 {
		w.now = w.now.Add(10 * time.Minute)
		fail()
		testkit.Expect(t, replica.Ready(), "with a path that can't be replaced")
		w.answers(t, 0, w.path(), true)
	}
}

// Where the API server shows a certificate, a path that an earlier replica has written is answered, too.
func TestReviewsByCertificateAreAnsweredAtAnyPath(t *testing.T) {
	handler := AtAnyPath(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) }))
	secret := secretEncoding.EncodeToString(make([]byte, secretBytes))
	for path, want := range map[string]string{"/mutate": "/mutate", "/" + secret + "/mutate": "/mutate", "/other/mutate": "/other/mutate", "/": "/"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: answered as %q, want %q", path, w.Body, want)
		}
	}
}
