package workloadidentities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

// deliveryAPI is an API of ContextDeliveries, as far as the test needs it.
type deliveryAPI struct {
	mu      sync.Mutex
	failure string // the answer to lists and new watches: a Status; empty: none
	items   []v1alpha1.ContextDelivery
	lists   int
	watches []chan string
}

func (a *deliveryAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	failure, items, watch := a.failure, a.items, r.URL.Query().Get("watch") != ""
	events := make(chan string, 10)
	if watch && failure == "" {
		a.watches = append(a.watches, events)
	}
	if !watch {
		a.lists++
	}
	a.mu.Unlock()
	switch {
	case r.URL.Path != "/apis/identity.credence.dev/v1alpha1/contextdeliveries" || r.URL.Query().Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusTeapot)
	case failure != "":
		var status metav1.Status
		if err := json.Unmarshal([]byte(failure), &status); err != nil {
			panic(err)
		}
		w.WriteHeader(int(status.Code))
		fmt.Fprint(w, failure)
	case watch:
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-events:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		_ = json.NewEncoder(w).Encode(v1alpha1.ContextDeliveryList{
			TypeMeta: metav1.TypeMeta{APIVersion: "identity.credence.dev/v1alpha1", Kind: "ContextDeliveryList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: items})
	}
}

// set has another answer given from now on, and ends watches by an event.
func (a *deliveryAPI) set(failure, event string, items ...v1alpha1.ContextDelivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure, a.items = failure, items
	for _, watch := range a.watches {
		watch <- event
	}
	a.watches = nil
}

func deliveryInto(name, secret string) v1alpha1.ContextDelivery {
	d := v1alpha1.ContextDelivery{TypeMeta: metav1.TypeMeta{APIVersion: "identity.credence.dev/v1alpha1", Kind: "ContextDelivery"}, ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}
	d.Spec.ContextObject.UID = types.UID("u-" + name)
	if secret != "" {
		d.Spec.Secret = v1alpha1.DeliveredSecret{Namespace: "ns", Name: secret}
	}
	return d
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// direct answers requests in this process, so that time can pass quickly.
type direct struct{ http.Handler }

// answer is what a handler writes.
type answer struct {
	*io.PipeWriter
	header http.Header
	code   chan int
	once   sync.Once
}

func (a *answer) Header() http.Header  { return a.header }
func (a *answer) WriteHeader(code int) { a.once.Do(func() { a.code <- code }) }
func (a *answer) Flush()               { a.WriteHeader(http.StatusOK) }
func (a *answer) Write(p []byte) (int, error) {
	a.Flush()
	return a.PipeWriter.Write(p)
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	body, writer := io.Pipe()
	a := &answer{PipeWriter: writer, header: http.Header{}, code: make(chan int, 1)}
	go func() {
		d.ServeHTTP(a, r)
		a.Flush()
		_ = writer.Close()
	}()
	return &http.Response{StatusCode: <-a.code, Header: a.header, Body: body, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// Deliveries stay while the identity cluster refuses, fails or does not know them, which is logged once; a resource version that has expired is
// followed by a list.
func TestDeliveries(t *testing.T) { synctest.Test(t, deliveriesStay) }

func deliveriesStay(t *testing.T) {
	const older = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	api, log := &deliveryAPI{failure: older}, &lines{}
	var mu sync.Mutex
	var changed []string
	known := false
	deliveries := testkit.Need(workloadidentities.NewDeliveries(&rest.Config{Host: "http://identities", QPS: -1, Transport: direct{api}}, "east", func(d *v1alpha1.ContextDelivery) {
		mu.Lock()
		defer mu.Unlock()
		changed = append(changed, d.Name)
	}, func() { known = true }, slog.New(slog.NewTextHandler(log, nil))))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = deliveries.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	tries := func(while time.Duration) int {
		api.mu.Lock()
		before := api.lists
		api.mu.Unlock()
		time.Sleep(while)
		synctest.Wait()
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.lists - before
	}
	if n := tries(10 * time.Minute); n < 10 || n > 60 || deliveries.Known() || known || log.count("older version") != 1 {
		t.Fatalf("tried %d times in ten minutes, known %v, logged %d times", n, known, log.count("older version"))
	}

	a := deliveryInto("a", "s")
	api.set("", "", a, deliveryInto("b", "s"), deliveryInto("lost", ""))
	tries(time.Minute)
	secret := types.NamespacedName{Namespace: "ns", Name: "s"}
	if of := deliveries.Of(secret); !known || len(of) != 2 || of[0].Name != "a" || of[1].Name != "b" {
		t.Errorf("known %v, deliveries into it: %v", known, of)
	}
	if !deliveries.Unplaced("u-lost") || deliveries.Unplaced("u-a") || deliveries.Unplaced("") {
		t.Error("only the object of the delivery without a Secret is unplaced")
	}
	if lost := deliveries.Named("lost"); lost == nil || lost.Name != "lost" || deliveries.Named("none") != nil || len(deliveries.Of(types.NamespacedName{})) != 1 {
		t.Errorf("named lost: %v; without a Secret: %v", lost, deliveries.Of(types.NamespacedName{}))
	}
	if got := deliveries.Secrets("ns"); len(got) != 2 || len(deliveries.Secrets("")) != 2 || len(deliveries.Secrets("other")) != 0 {
		t.Errorf("Secrets %v", got)
	}

	for _, failure := range []struct{ status, words string }{
		{`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`, "gives no answer"},
		{`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, "exactly one WorkloadCluster"},
		{`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`, "this cluster left the identity cluster, or its account there was deleted, or its token ended: to join again, a cluster admin of the identity cluster runs: credence cluster join east --identities"},
	} {
		// The watch ends, and the lists that follow fail.
		api.set(failure.status, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
		if n := tries(10 * time.Minute); n < 10 || n > 60 || len(deliveries.Of(secret)) != 2 || log.count(failure.words) != 1 {
			t.Errorf("%s: tried %d times, %d deliveries, logged %d times", failure.status, n, len(deliveries.Of(secret)), log.count(failure.words))
		}
	}
	mu.Lock()
	changed = nil
	mu.Unlock()
	api.set("", "", a)
	tries(time.Minute)
	mu.Lock()
	defer mu.Unlock()
	if len(deliveries.Of(secret)) != 1 || !slices.Contains(changed, "b") || log.count("xpired") != 0 {
		t.Errorf("%v, of the changes %v; expired resource versions were logged %d times", deliveries.Of(secret), changed, log.count("xpired"))
	}
}
