package clientgo_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// apiServer is as much of a Kubernetes API as informers of ConfigMaps need: list, and watch with initial events.
type apiServer struct {
	*httptest.Server
	authority *exectest.Authority
	allow     atomic.Pointer[func(token, name string) bool]
	opened    atomic.Int32
	requests  atomic.Int32
	refused   atomic.Int32
	protocol  atomic.Int32

	mu       sync.Mutex
	change   *sync.Cond
	version  int
	objects  []*corev1.ConfigMap
	watches  map[chan struct{}]bool
	finished bool
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{authority: exectest.NewAuthority(t), watches: map[chan struct{}]bool{}}
	s.change = sync.NewCond(&s.mu)
	s.accept(func(string, string) bool { return true })
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.TLS = s.authority.Server()
	s.TLS.Time = func() time.Time { return start }
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(func() {
		s.mu.Lock()
		s.finished = true
		s.mu.Unlock()
		s.breakWatches()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// accept sets which tokens and names of client certificates the server takes from now on.
func (s *apiServer) accept(f func(token, name string) bool) { s.allow.Store(&f) }

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.protocol.Store(int32(r.ProtoMajor))
	name := ""
	if len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	w.Header().Set("Content-Type", "application/json")
	if !(*s.allow.Load())(r.Header.Get("Authorization"), name) {
		s.refused.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonUnauthorized, Code: 401})
		return
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/configmaps" && r.URL.Path != "/api/v1/namespaces/default/configmaps":
		writeJSON(w, map[string]string{"token": r.Header.Get("Authorization"), "name": name})
	case query.Get("watch") == "":
		s.mu.Lock()
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)}}
		for _, o := range s.objects {
			list.Items = append(list.Items, *o)
		}
		s.mu.Unlock()
		writeJSON(w, list)
	default:
		s.watch(w, r, query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true")
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, from string, initial bool) {
	broken := make(chan struct{})
	s.mu.Lock()
	s.watches[broken] = true
	s.mu.Unlock()
	defer func() { s.mu.Lock(); delete(s.watches, broken); s.mu.Unlock() }()
	go func() { // wake the loop below
		select {
		case <-r.Context().Done():
		case <-broken:
		}
		s.change.Broadcast()
	}()
	sent := 0
	_, _ = fmt.Sscan(from, &sent)
	if initial {
		sent = 0
	}
	send := func(kind string, object any) {
		writeJSON(w, map[string]any{"type": kind, "object": object})
		w.(http.Flusher).Flush()
	}
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		for sent >= s.version && !initial && !ended(r.Context().Done(), broken) && !s.finished {
			s.change.Wait()
		}
		if ended(r.Context().Done(), broken) || s.finished {
			s.mu.Unlock()
			return
		}
		next := append([]*corev1.ConfigMap(nil), s.objects[sent:]...)
		sent = s.version
		s.mu.Unlock()
		for _, o := range next {
			send("ADDED", o)
		}
		if initial {
			send("BOOKMARK", &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(sent), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
			initial = false
		}
	}
}

func ended(a, b <-chan struct{}) bool {
	select {
	case <-a:
		return true
	case <-b:
		return true
	default:
		return false
	}
}

// add creates a ConfigMap, whose resource version is its place in the list.
func (s *apiServer) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.objects = append(s.objects, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u", ResourceVersion: fmt.Sprint(s.version)}})
	s.change.Broadcast()
}

func (s *apiServer) breakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		close(w)
		delete(s.watches, w)
	}
	s.change.Broadcast()
}

func (s *apiServer) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

func writeJSON(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

// config is that of a client of s whose plugin is p.
func (s *apiServer) config(p *exectest.Provider) *rest.Config {
	return &rest.Config{
		Host:            s.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.PEM()},
		ExecProvider:    execProvider(p),
		QPS:             -1,
	}
}

func execProvider(p *exectest.Provider) *api.ExecConfig {
	c := p.Config()
	out := &api.ExecConfig{Command: c.Command, Args: c.Args, APIVersion: c.APIVersion, InteractiveMode: api.ExecInteractiveMode(c.InteractiveMode)}
	for _, e := range c.Env {
		out.Env = append(out.Env, api.ExecEnvVar{Name: e.Name, Value: e.Value})
	}
	return out
}

func newPool(t testing.TB, o execcredential.Options) (*execcredential.Pool, *exectest.Clock) {
	t.Helper()
	clock := exectest.NewClock(start)
	o.Clock, o.Stderr = clock, io.Discard
	pool := need(execcredential.NewPool(o))(t)
	t.Cleanup(func() { _ = pool.Close() })
	return pool, clock
}

func adapted(t testing.TB, pool *execcredential.Pool, c *rest.Config) *rest.Config {
	t.Helper()
	return need(clientgo.Config(pool, c))(t)
}

func clientOf(t testing.TB, c *rest.Config) *http.Client {
	t.Helper()
	return need(rest.HTTPClientFor(c))(t)
}

func get(client *http.Client, url string) (string, int, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), response.StatusCode, err
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
