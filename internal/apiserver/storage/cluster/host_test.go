package cluster_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

const path = "/apis/storage.credence.dev/v1/records"

// record is one as the host cluster has it.
type record struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Key             string            `json:"key"`
	Value           []byte            `json:"value"`
	Replaces        string            `json:"replaces,omitempty"`
}

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// change is an event with its revision.
type change struct {
	revision int
	event    event
	object   record
}

// host serves records as the API server of a host cluster does, with conflicts, pages of one state, watches and compaction.
type host struct {
	mu        sync.Mutex
	changed   *sync.Cond
	served    bool // whether the definition of records is there
	states    []map[string]record
	changes   []change
	compacted int // states before it are gone
	hangups   int // watches up to this number have been ended
	watches   int
}

func newHost(t *testing.T) (*host, rest.Interface) {
	t.Helper()
	h := &host{served: true, states: []map[string]record{{}, {}}}
	h.changed = sync.NewCond(&h.mu)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		h.hangUp()
		server.Close()
	})
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	client := testkit.Need(rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(), GroupVersion: &schema.GroupVersion{Version: "v1"},
	}}))(t)
	return h, client
}

// do runs a function while no request is served.
func (h *host) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.changed.Broadcast()
}

// hangUp ends all watches.
func (h *host) hangUp() { h.do(func() { h.hangups = h.watches }) }

func (h *host) latest() int { return len(h.states) - 1 }

// set stores a record, or removes it if its key is empty, and returns it with its new revision.
func (h *host) set(name string, r record) record {
	state := maps.Clone(h.states[h.latest()])
	revision := h.latest() + 1
	before, existed := state[name]
	kind := "ADDED"
	switch {
	case r.Key == "":
		kind, r = "DELETED", before
		delete(state, name)
	case existed:
		kind = "MODIFIED"
	}
	r.Metadata.Name, r.Metadata.ResourceVersion = name, strconv.Itoa(revision)
	if kind != "DELETED" {
		state[name] = r
	}
	h.states = append(h.states, state)
	h.changes = append(h.changes, change{revision, event{kind, r}, r})
	h.changed.Broadcast()
	return r
}

// put stores a record as another program would.
func (h *host) put(name, key string) {
	h.do(func() { h.set(name, record{Key: key, Value: []byte("{}")}) })
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, path), "/")
	if r.URL.Query().Get("watch") != "" {
		h.watch(w, r)
		return
	}
	h.mu.Lock()
	code, answer := h.answer(r, name)
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (h *host) answer(r *http.Request, name string) (int, any) {
	if !h.served {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "")
	}
	stored, exists := h.states[h.latest()][name]
	if name != "" && r.Method != http.MethodPost && !exists {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, name)
	}
	var sent struct {
		record        `json:",inline"`
		Preconditions metav1.Preconditions `json:"preconditions"`
	}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&sent)
	}
	switch r.Method {
	case http.MethodPost:
		if _, exists := h.states[h.latest()][sent.Metadata.Name]; exists {
			return failure(http.StatusConflict, metav1.StatusReasonAlreadyExists, sent.Metadata.Name)
		}
		return http.StatusCreated, h.set(sent.Metadata.Name, sent.record)
	case http.MethodPut:
		if sent.Metadata.ResourceVersion != stored.Metadata.ResourceVersion {
			return failure(http.StatusConflict, metav1.StatusReasonConflict, name)
		}
		return http.StatusOK, h.set(name, sent.record)
	case http.MethodDelete:
		if version := sent.Preconditions.ResourceVersion; version != nil && *version != stored.Metadata.ResourceVersion {
			return failure(http.StatusConflict, metav1.StatusReasonConflict, name)
		}
		h.set(name, record{})
		return http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}
	}
	if name != "" {
		return http.StatusOK, stored
	}
	return h.list(r)
}

func failure(code int32, reason metav1.StatusReason, name string) (int, any) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
	}
	if name != "" {
		status.Details = &metav1.StatusDetails{Name: name}
	}
	return int(code), status
}

// position is what a continue token of Kubernetes has.
type position struct {
	Version  string `json:"v"`
	Revision int    `json:"rv"`
	Start    string `json:"start"`
}

func (h *host) list(r *http.Request) (int, any) {
	query := r.URL.Query()
	from := position{Revision: -1}
	if token := query.Get("continue"); token != "" {
		decoded, _ := base64.RawURLEncoding.DecodeString(token)
		_ = json.Unmarshal(decoded, &from)
	} else if exact, err := strconv.Atoi(query.Get("resourceVersion")); err == nil {
		from.Revision = exact
	}
	if from.Revision < 0 {
		from.Revision = h.latest()
	}
	if from.Revision < h.compacted {
		return failure(http.StatusGone, metav1.StatusReasonExpired, "")
	}
	state := h.states[from.Revision]
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []record        `json:"items"`
	}
	list.Metadata.ResourceVersion = strconv.Itoa(from.Revision)
	limit, _ := strconv.Atoi(query.Get("limit"))
	for _, name := range slices.Sorted(maps.Keys(state)) {
		switch {
		case name < from.Start || !selected(r, state[name]):
		case limit > 0 && len(list.Items) == limit:
			if list.Metadata.Continue == "" {
				token, _ := json.Marshal(position{"meta.k8s.io/v1", from.Revision, name})
				list.Metadata.Continue = base64.RawURLEncoding.EncodeToString(token)
				list.Metadata.RemainingItemCount = new(int64)
			}
			*list.Metadata.RemainingItemCount++
		default:
			list.Items = append(list.Items, state[name])
		}
	}
	return http.StatusOK, list
}

func selected(r *http.Request, of record) bool {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	name, named := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
	return err == nil && selector.Matches(labels.Set(of.Metadata.Labels)) && (!named || of.Metadata.Name == name)
}

func (h *host) watch(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches++
	number := h.watches
	after, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	encoder, flush := json.NewEncoder(w), w.(http.Flusher).Flush
	w.Header().Set("Content-Type", "application/json")
	if after == 0 {
		after = h.latest()
		for _, name := range slices.Sorted(maps.Keys(h.states[after])) {
			if stored := h.states[after][name]; selected(r, stored) {
				_ = encoder.Encode(event{"ADDED", stored})
			}
		}
	} else if after < h.compacted {
		_, gone := failure(http.StatusGone, metav1.StatusReasonExpired, "")
		_ = encoder.Encode(event{"ERROR", gone})
		return
	}
	flush()
	sent := 0
	for r.Context().Err() == nil && h.hangups < number {
		for ; sent < len(h.changes); sent++ {
			if c := h.changes[sent]; c.revision > after && selected(r, c.object) {
				_ = encoder.Encode(c.event)
				flush()
			}
		}
		h.changed.Wait()
	}
}
