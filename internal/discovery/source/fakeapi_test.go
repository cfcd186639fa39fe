package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fakeAPI lists and watches the ConfigMaps of one namespace as the API does: with resource versions, over TLS and HTTP/2.
// It can be away, and can forget the history that a watch would go on from.
type fakeAPI struct {
	server *httptest.Server

	mu        sync.Mutex
	changed   chan struct{} // closed at each change
	version   int
	objects   map[string]*corev1.ConfigMap
	events    []fakeEvent
	forgotten int // watches from an older version are expired
	away      bool
	refusing  bool
	lists     int
	watches   int
	selectors map[string]bool
	versions  map[string]bool // that lists have requested
}

type fakeEvent struct {
	version int
	kind    string
	object  *corev1.ConfigMap
}

const fakeNamespace = "credence-system"

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	api := &fakeAPI{changed: make(chan struct{}), version: 1, objects: map[string]*corev1.ConfigMap{}, selectors: map[string]bool{}, versions: map[string]bool{}}
	api.server = httptest.NewUnstartedServer(api)
	api.server.EnableHTTP2 = true
	api.server.StartTLS()
	t.Cleanup(api.server.Close)
	return api
}

func (a *fakeAPI) config() *rest.Config {
	certificate := a.server.Certificate()
	return &rest.Config{Host: a.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemCertificate(certificate.Raw)}, Dial: a.dial}
}

// change runs f under the lock and wakes the watches.
func (a *fakeAPI) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *fakeAPI) put(name string, data map[string]string) {
	a.change(func() {
		a.version++
		kind := "MODIFIED"
		if a.objects[name] == nil {
			kind = "ADDED"
		}
		object := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: fakeNamespace, Name: name, ResourceVersion: strconv.Itoa(a.version)},
			Data:       data,
		}
		a.objects[name] = object
		a.events = append(a.events, fakeEvent{a.version, kind, object})
	})
}

func (a *fakeAPI) remove(name string) {
	a.change(func() {
		a.version++
		object := a.objects[name].DeepCopy()
		object.ResourceVersion = strconv.Itoa(a.version)
		delete(a.objects, name)
		a.events = append(a.events, fakeEvent{a.version, "DELETED", object})
	})
}

func (a *fakeAPI) setAway(away bool) { a.change(func() { a.away = away }) }

// setRefusing makes connections end, and new ones be refused, as those of a process that is not there.
func (a *fakeAPI) setRefusing(refusing bool) {
	a.change(func() { a.refusing = refusing })
	if refusing {
		a.server.CloseClientConnections()
	}
}

func (a *fakeAPI) dial(ctx context.Context, network, address string) (net.Conn, error) {
	a.mu.Lock()
	refusing := a.refusing
	a.mu.Unlock()
	if refusing {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (a *fakeAPI) listed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// forget ends every watch, and lets none go on from before now.
func (a *fakeAPI) forget() {
	a.change(func() { a.version++; a.forgotten = a.version; a.events = nil })
}

func (a *fakeAPI) watching() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watches
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	away := a.away
	a.selectors[r.URL.Query().Get("fieldSelector")] = true
	a.mu.Unlock()
	switch {
	case away:
		panic(http.ErrAbortHandler)
	case r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/"+fakeNamespace+"/configmaps":
		http.Error(w, "no such thing: "+r.Method+" "+r.URL.Path, http.StatusForbidden)
	case r.URL.Query().Get("watch") == "":
		a.list(w, r.URL.Query().Get("resourceVersion"))
	default:
		if err := a.watch(w, r); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func (a *fakeAPI) list(w http.ResponseWriter, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists++
	a.versions[version] = true
	list := corev1.ConfigMapList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)},
	}
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		list.Items = append(list.Items, *a.objects[name])
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request) error {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.watches++
	expired := from < a.forgotten
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if expired {
		w.WriteHeader(http.StatusGone)
		return json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
		})
	}
	for {
		_ = http.NewResponseController(w).Flush()
		a.mu.Lock()
		changed, away, expired := a.changed, a.away, from < a.forgotten
		events := slices.Clone(a.events)
		a.mu.Unlock()
		if away {
			return errors.New("away")
		}
		if expired {
			return nil
		}
		for _, event := range events {
			if event.version <= from {
				continue
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"type": event.kind, "object": event.object}); err != nil {
				return fmt.Errorf("send event: %w", err)
			}
			from = event.version
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		}
	}
}
