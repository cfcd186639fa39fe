package keystore_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

const namespace = "credence-system"

// api keeps the Secrets of one namespace as the API server does: a write names the version that it replaces, and a watch
// begins with what there is.
type api struct {
	server *httptest.Server

	mu      sync.Mutex
	changed chan struct{} // closed at each change
	version int
	secrets map[string]*corev1.Secret
	watches map[string]int // running ones, by field selector
	ending  chan struct{}  // closed to end all watches
	methods []string       // methods of the requests
	// before is called with each request, and may answer it.
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := &api{changed: make(chan struct{}), ending: make(chan struct{}), secrets: map[string]*corev1.Secret{}, watches: map[string]int{}}
	a.server = httptest.NewUnstartedServer(a)
	a.server.EnableHTTP2 = true
	a.server.StartTLS()
	t.Cleanup(func() {
		a.endWatches()
		a.server.Close()
	})
	return a
}

// client returns a client of its own, as each process has one.
func (a *api) client(t testing.TB) corev1client.CoreV1Interface {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	client := testkit.Need(corev1client.NewForConfig(&rest.Config{
		Host:            a.server.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		ContentConfig:   rest.ContentConfig{ContentType: "application/json"},
		QPS:             -1,
	}))(t)
	return client
}

// put writes a Secret whatever there is, and returns its version.
func (a *api) put(secret *corev1.Secret) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store(secret.DeepCopy()).ResourceVersion
}

func (a *api) get(name string) *corev1.Secret {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.secrets[name].DeepCopy()
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.secrets, name)
	a.wake()
}

// answer makes f answer the requests for which it returns true.
func (a *api) answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = f
}

// requests returns the methods of the requests since it was called last.
func (a *api) requests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	methods := a.methods
	a.methods = nil
	return strings.Join(methods, " ")
}

func (a *api) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.ending)
	a.ending = make(chan struct{})
}

// watched returns the field selectors of the running watches.
func (a *api) watched() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.watches))
}

func (a *api) store(secret *corev1.Secret) *corev1.Secret {
	a.version++
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	secret.ResourceVersion = strconv.Itoa(a.version)
	a.secrets[secret.Name] = secret
	a.wake()
	return secret
}

func (a *api) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	before := a.before
	a.methods = append(a.methods, r.Method)
	a.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	const path = "/api/v1/namespaces/" + namespace + "/secrets"
	name, one := strings.CutPrefix(r.URL.Path, path+"/")
	switch {
	case r.Method == http.MethodGet && one:
		a.answerSecret(w, func() (*corev1.Secret, error) { return a.existing(name) })
	case r.Method == http.MethodPost && r.URL.Path == path:
		a.answerSecret(w, func() (*corev1.Secret, error) { return a.created(r) })
	case r.Method == http.MethodPut && one:
		a.answerSecret(w, func() (*corev1.Secret, error) { return a.updated(r, name) })
	case r.Method == http.MethodGet && r.URL.Path == path && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	default:
		http.Error(w, "no such thing: "+r.Method+" "+r.URL.Path, http.StatusNotFound)
	}
}

func (a *api) answerSecret(w http.ResponseWriter, do func() (*corev1.Secret, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	secret, err := do()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		answerStatus(w, status.Status())
		return
	}
	_ = json.NewEncoder(w).Encode(secret)
}

func answerStatus(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func resource() schema.GroupResource { return schema.GroupResource{Resource: "secrets"} }

func (a *api) existing(name string) (*corev1.Secret, error) {
	if a.secrets[name] == nil {
		return nil, apierrors.NewNotFound(resource(), name)
	}
	return a.secrets[name], nil
}

func (a *api) created(r *http.Request) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := json.NewDecoder(r.Body).Decode(secret); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if a.secrets[secret.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource(), secret.Name)
	}
	return a.store(secret), nil
}

func (a *api) updated(r *http.Request, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := json.NewDecoder(r.Body).Decode(secret); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	present, err := a.existing(name)
	if err != nil {
		return nil, err
	}
	switch {
	case secret.ResourceVersion != "" && secret.ResourceVersion != present.ResourceVersion:
		return nil, apierrors.NewConflict(resource(), name, errors.New("the object has been modified"))
	case secret.Type != present.Type:
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, name, field.ErrorList{field.Invalid(field.NewPath("type"), secret.Type, "field is immutable")})
	case apiequality.Semantic.DeepEqual(secret, present):
		return present, nil
	}
	return a.store(secret), nil
}

// watch sends events of the one Secret that the field selector names.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	selector := r.URL.Query().Get("fieldSelector")
	name := strings.TrimPrefix(selector, "metadata.name=")
	a.mu.Lock()
	a.watches[selector]++
	ending := a.ending
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.watches[selector]--; a.watches[selector] == 0 {
			delete(a.watches, selector)
		}
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	var sent *corev1.Secret
	for {
		a.mu.Lock()
		now, changed := a.secrets[name], a.changed
		a.mu.Unlock()
		if now != sent {
			_ = json.NewEncoder(w).Encode(event(sent, now))
			sent = now
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-ending:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func event(before, now *corev1.Secret) map[string]any {
	switch {
	case before == nil:
		return map[string]any{"type": "ADDED", "object": now}
	case now == nil:
		return map[string]any{"type": "DELETED", "object": before}
	default:
		return map[string]any{"type": "MODIFIED", "object": now}
	}
}
