package execcredential_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
)

// revocable is a server that takes one token, the one that was given out last, if that is the current one.
func revocable(t *testing.T, current *atomic.Value) *server {
	return serve(t, true, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+current.Load().(string) })
}

// A server that refuses everything takes nothing from the others that have the same source.
func TestServersHaveABudgetEach(t *testing.T) {
	var current atomic.Value
	current.Store("token-1")
	source, script, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		token := fmt.Sprintf("token-%d", run)
		current.Store(token)
		return execcredential.Material{Token: token}, nil
	})
	good := revocable(t, &current)
	bad := serve(t, true, func(*http.Request) bool { return false })
	toGood, toBad := &http.Client{Transport: source.Transport(good.transport())}, &http.Client{Transport: source.Transport(bad.transport())}
	for range 600 {
		if _, status, err := get(toBad, bad.URL); status != 401 {
			t.Fatalf("status %d, error %v", status, err)
		}
		clock.Advance(time.Second)
	}
	if runs := script.runs.Load(); runs > 8 {
		t.Errorf("%d runs for a server that refuses everything for ten minutes", runs)
	}
	for i := range 5 {
		current.Store("revoked")
		if _, status, err := get(toGood, good.URL); status != 200 {
			t.Errorf("revocation %d: status %d, error %v", i, status, err)
		}
	}
}

// A credential that is revoked again and again, and replaced with success each time, is replaced each time. Many runs that follow each other
// closely wait for the pause: one a second at most.
func TestSuccessfulReplacementsDoNotCount(t *testing.T) {
	var current atomic.Value
	source, script, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		token := fmt.Sprintf("token-%d", run)
		current.Store(token)
		return execcredential.Material{Token: token}, nil
	})
	server := revocable(t, &current)
	client := &http.Client{Transport: source.Transport(server.transport())}
	current.Store("")
	for i := range 100 {
		if _, status, err := get(client, server.URL); status != 200 {
			t.Fatalf("revocation %d: status %d, error %v", i, status, err)
		}
		current.Store("revoked")
		clock.Advance(2500 * time.Millisecond)
	}
	for range 11 { // at one moment
		if _, status, err := get(client, server.URL); status != 200 {
			t.Fatalf("status %d, error %v", status, err)
		}
		current.Store("revoked")
	}
	before := script.runs.Load()
	done := make(chan int)
	go func() {
		_, status, _ := get(client, server.URL)
		done <- status
	}()
	clock.WaitForTimers(1)
	if script.runs.Load() != before {
		t.Error("runs without a pause")
	}
	clock.Advance(time.Second)
	if status := <-done; status != 200 || script.runs.Load() != before+1 {
		t.Errorf("after the pause: status %d, %d runs", status, script.runs.Load()-before)
	}
}

// A server that takes the refused credential now and then has not taken another one.
func TestFlakyServerIsBounded(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, true, func(*http.Request) bool { return requests.Add(1)%2 == 0 })
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "same"}, nil
	})
	client := &http.Client{Transport: source.Transport(server.transport())}
	for range 100 {
		if _, _, err := get(client, server.URL); err != nil {
			t.Fatal(err)
		}
	}
	if runs := script.runs.Load(); runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

// A source that one server refuses is the first one for others all the same.
func TestOrderOfSourcesIsPerServer(t *testing.T) {
	takes := func(token string) *server {
		return serve(t, true, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token })
	}
	one, two := takes("first"), takes("second")
	pool, clock := newPool(t, execcredential.Options{})
	give := func(token string) *execcredential.Source {
		return pool.SourceOf(&script{now: clock.Now, next: func(int) (execcredential.Material, error) { return execcredential.Material{Token: token}, nil }})
	}
	account := execcredential.NewAccount(give("first"), give("second"))
	roundTripper := account.Wrap(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		for _, server := range []*server{one, two} {
			if "https://"+r.URL.Host == server.URL {
				return server.Client().Transport.RoundTrip(r)
			}
		}
		return nil, fmt.Errorf("no server %s", r.URL.Host)
	}))
	client := &http.Client{Transport: roundTripper}
	for range 3 {
		for _, server := range []*server{two, one} {
			if _, status, err := get(client, server.URL); status != 200 {
				t.Fatalf("status %d, error %v", status, err)
			}
		}
	}
	if got := one.requests.Load(); got != 3 {
		t.Errorf("%d requests to a server that takes the first credential, for 3", got)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
