package election

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

// leases is a cluster that keeps one Lease.
type leases struct {
	mu    sync.Mutex
	lease *coordinationv1.Lease
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet && l.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: "NotFound", Code: 404})
		return
	}
	if r.Method != http.MethodGet {
		l.lease = &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(l.lease); err != nil {
			panic(err)
		}
	}
	_ = json.NewEncoder(w).Encode(l.lease)
}

// holder is who holds the Lease; empty: it is free, or not there.
func (l *leases) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.lease.Spec.HolderIdentity
}

var name = types.NamespacedName{Namespace: "credence-system", Name: "work"}

func start(t *testing.T, l *leases) coordinationv1client.CoordinationV1Interface {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	client := testkit.Need(coordinationv1client.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}))(t)
	return client
}

// The leader works while it holds the Lease. At its end the Lease is free, so that another replica need not wait.
func TestLeaderHoldsTheLeaseWhileItWorks(t *testing.T) {
	l := &leases{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	testkit.Expect(t, Lead(ctx, start(t, l), name, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
		if holder := l.holder(); !strings.Contains(holder, "_") {
			t.Errorf("the Lease is held by %q", holder)
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}))
	if holder := l.holder(); holder != "" {
		t.Errorf("at the end the Lease is held by %q", holder)
	}
}

// A replica does not work while another one holds the Lease.
func TestReplicaWaitsForTheLeader(t *testing.T) {
	other, seconds, now := "other", int32(3600), metav1.NewMicroTime(time.Now())
	l := &leases{lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &seen{text: "another replica leads", found: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- Lead(ctx, start(t, l), name, slog.New(slog.NewTextHandler(seen, nil)), func(context.Context) error {
			t.Error("it works")
			return nil
		})
	}()
	select {
	case <-seen.found:
	case <-time.After(time.Minute):
		t.Fatal("the leader is not seen")
	}
	cancel()
	if err := <-done; err != nil || l.holder() != other {
		t.Errorf("%v, and the Lease is held by %q", err, l.holder())
	}
}

// seen is a log in which a text is waited for.
type seen struct {
	text  string
	once  sync.Once
	found chan struct{}
}

func (s *seen) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.once.Do(func() { close(s.found) })
	}
	return len(p), nil
}
