package credentialspecs_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/gmsa/credentialspecs"
	"github.com/credence-id/credence/test/testkit"
)

// api has GMSACredentialSpecs, and sends events of new ones. With code, it answers that to everything.
type api struct {
	mu      sync.Mutex
	code    int
	objects map[string]string // name to credspec
	events  chan string
	later   atomic.Int64 // by how much the clock is ahead
}

func (a *api) now() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(a.later.Load())) }

func object(name, credspec string) string {
	return fmt.Sprintf(`{"apiVersion":"windows.k8s.io/v1","kind":"GMSACredentialSpec","metadata":{"name":%q,"resourceVersion":"2"},"credspec":%s}`, name, credspec)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	code, objects := a.code, []string{}
	for name, credspec := range a.objects {
		objects = append(objects, object(name, credspec))
	}
	const collection = "/apis/windows.k8s.io/v1/gmsacredentialspecs"
	name := strings.TrimPrefix(r.URL.Path, collection+"/")
	one, found := a.objects[name]
	a.mu.Unlock()
	query := r.URL.Query()
	switch {
	case code != 0:
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, map[int]string{404: "NotFound", 403: "Forbidden"}[code], code)
	case r.URL.Path != collection && found:
		fmt.Fprint(w, object(name, one))
	case r.URL.Path != collection:
		w.WriteHeader(404)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case query.Get("sendInitialEvents") != "": // a server that does not stream lists
		w.WriteHeader(422)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") != "":
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-a.events:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		fmt.Fprintf(w, `{"apiVersion":"windows.k8s.io/v1","kind":"GMSACredentialSpecList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(objects, ","))
	}
}

func (a *api) tell(kind, object string) {
	a.events <- `{"type":"` + kind + `","object":` + object + `}`
}

func follow(t *testing.T, a *api) *credentialspecs.Follower {
	t.Helper()
	server := httptest.NewServer(a)
	f := testkit.Need(credentialspecs.New(&rest.Config{Host: server.URL}, a.now, slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; server.CloseClientConnections(); server.Close() })
	return f
}

func TestFollower(t *testing.T) {
	a := &api{objects: map[string]string{"webapp1": `{"b":"2","a":"1"}`, "empty": "null"}, events: make(chan string)}
	f := follow(t, a)
	testkit.Eventually(t, "it never got ready", func() bool { return f.Ready() == nil })
	if spec, known := f.Known("webapp1"); !known || spec != (gmsa.Spec{Exists: true, Contents: `{"a":"1","b":"2"}`}) {
		t.Errorf("webapp1 is %+v, known %t", spec, known)
	}
	if spec, known := f.Known("empty"); !known || !spec.Exists || spec.Fault == "" || spec.Contents != "" {
		t.Errorf("empty is %+v, known %t", spec, known)
	}
	if _, known := f.Known("other"); known || f.Len() != 2 {
		t.Errorf("%d are known, other: %t", f.Len(), known)
	}
	if spec, err := f.Read(t.Context(), "other"); err != nil || spec.Exists {
		t.Errorf("one that does not exist: %+v, %v", spec, err)
	}
	a.tell("MODIFIED", object("webapp1", `{"a":"new"}`))
	testkit.Eventually(t, "a change was not seen", func() bool { spec, _ := f.Known("webapp1"); return spec.Contents == `{"a":"new"}` })
	a.tell("DELETED", object("webapp1", `{"a":"new"}`))
	testkit.Eventually(t, "its end was not seen", func() bool { _, known := f.Known("webapp1"); return !known })
	a.mu.Lock()
	a.objects["late"] = `{"a":"late"}`
	a.mu.Unlock()
	if spec, err := f.Read(t.Context(), "late"); err != nil || spec.Contents != `{"a":"late"}` {
		t.Errorf("one that the watch has not shown: %+v, %v", spec, err)
	}
}

func TestClustersWithoutTheKind(t *testing.T) {
	a := &api{code: 404}
	f := follow(t, a)
	testkit.Eventually(t, "a cluster without Windows keeps it from getting ready", func() bool { return f.Ready() == nil })
	if spec, err := f.Read(t.Context(), "webapp1"); err != nil || spec.Exists {
		t.Errorf("%+v, %v", spec, err)
	}

	refused := follow(t, &api{code: 403})
	testkit.Eventually(t, "it gives no reason for not being ready", func() bool {
		err := refused.Ready()
		if err == nil {
			t.Fatal("it is ready, and may not list")
		}
		return strings.Contains(err.Error(), "can't be listed")
	})
	if _, err := refused.Read(t.Context(), "webapp1"); err == nil || !strings.Contains(err.Error(), "read GMSACredentialSpec webapp1") {
		t.Errorf("an outage is reported as %v", err)
	}
}
