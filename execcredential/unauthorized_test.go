package execcredential_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// 100 concurrent requests with a revoked token: one run, 100 successes.
func TestStormOfRevokedTokens(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		var valid atomic.Value
		valid.Store("token-1")
		server := serve(t, http2, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+valid.Load().(string) })
		var runs atomic.Int32
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return exectest.Token(fmt.Sprintf("token-%d", runs.Add(1)), start.Add(time.Hour))
		})
		pool, _ := newPool(t, execcredential.Options{})
		client := &http.Client{Transport: sourceOf(t, pool, provider.Config()).Transport(server.transport())}
		if _, status, err := get(client, server.URL); status != 200 {
			t.Fatalf("status %d, error %v", status, err)
		}
		valid.Store("token-2") // the first one is revoked before its time
		for i, err := range storm(100, func() error {
			request, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("body"))
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != 200 || string(body) != "Bearer token-2 anonymous body" {
				return fmt.Errorf("status %d, body %q", response.StatusCode, body)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if provider.Runs() != 2 {
			t.Errorf("%d runs, want one for the first token and one for the second", provider.Runs())
		}
	})
}

// A server that answers 401 whatever it is sent causes one run, and each request is sent once where the credential stays the same.
func TestStormOfPersistent401(t *testing.T) {
	server := serve(t, true, func(*http.Request) bool { return false })
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "same"}, nil })
	client := &http.Client{Transport: source.Transport(server.transport())}
	for _, err := range storm(100, func() error {
		body, status, err := get(client, server.URL)
		if status != 401 || body != "unauthorized" {
			return fmt.Errorf("status %d, body %q, error %v", status, body, err)
		}
		return nil
	}) {
		expect(t, err)
	}
	if script.runs.Load() != 2 || server.requests.Load() != 100 {
		t.Errorf("%d runs and %d requests", script.runs.Load(), server.requests.Load())
	}
}

func TestFailedRefreshOf401(t *testing.T) {
	server := serve(t, false, func(*http.Request) bool { return false })
	source, script, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		if run > 1 {
			return execcredential.Material{}, errors.New("broken")
		}
		return execcredential.Material{Token: "abc"}, nil
	})
	client := &http.Client{Transport: source.Transport(server.transport())}
	for _, err := range storm(100, func() error {
		if _, status, err := get(client, server.URL); status != 401 {
			return fmt.Errorf("status %d, error %v", status, err)
		}
		return nil
	}) {
		expect(t, err)
	}
	if script.runs.Load() != 2 {
		t.Errorf("%d runs", script.runs.Load())
	}
}

// A server that answers 401 and never ends its answer holds no caller up.
func TestEndless401(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		server := serve(t, http2, all)
		server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer b" {
				w.WriteHeader(http.StatusUnauthorized)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		})
		source, _, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) { return execcredential.Material{Token: name(run)}, nil })
		if _, status, err := get(&http.Client{Transport: source.Transport(server.transport()), Timeout: time.Minute}, server.URL); status != 200 {
			t.Errorf("status %d, error %v", status, err)
		}
	})
}

// A body that can't be read again is not sent again; the next request has the new credential.
func TestBodyThatCannotBeReplayed(t *testing.T) {
	server := serve(t, false, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer b" })
	source, script, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) { return execcredential.Material{Token: name(run)}, nil })
	client := &http.Client{Transport: source.Transport(server.transport())}
	post := func() int {
		response := need(client.Post(server.URL, "text/plain", struct{ io.Reader }{strings.NewReader("body")}))(t)
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := post(); got != 401 || script.runs.Load() != 2 {
		t.Errorf("status %d after %d runs", got, script.runs.Load())
	}
	if got := post(); got != 200 || script.runs.Load() != 2 {
		t.Errorf("status %d after %d runs", got, script.runs.Load())
	}
}

// A short body of known length is sent again, whatever it is read from.
func TestShortBodyIsReplayed(t *testing.T) {
	server := serve(t, true, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer b" })
	for name, c := range map[string]struct {
		content string
		length  int64
		want    string // the body of the answer; empty for an error
	}{
		"short":        {content: "body", length: 4, want: "Bearer b anonymous body"},
		"just short":   {content: strings.Repeat("x", 64<<10), length: 64 << 10, want: "Bearer b anonymous " + strings.Repeat("x", 64<<10)},
		"too long":     {content: strings.Repeat("x", 64<<10+1), length: 64<<10 + 1, want: "unauthorized"},
		"length unset": {content: "body", length: -1, want: "unauthorized"},
		"length large": {content: "body", length: 5},
		"length small": {content: "body", length: 3},
	} {
		t.Run(name, func(t *testing.T) {
			source, _, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
				return execcredential.Material{Token: string(rune('a' + run - 1))}, nil
			})
			body := &closing{Reader: strings.NewReader(c.content)}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
			request.ContentLength = c.length
			response, err := source.Transport(server.transport()).RoundTrip(request)
			wait(t, "the body to be closed", body.closed.Load) // HTTP/2 closes it when it likes
			if request.Body != body || request.GetBody != nil {
				t.Error("the caller's request was changed")
			}
			if c.want == "" {
				if err == nil {
					t.Errorf("status %d", response.StatusCode)
				}
				return
			}
			must(t, err)
			defer response.Body.Close()
			if got, _ := io.ReadAll(response.Body); string(got) != c.want || response.Request != request {
				t.Errorf("status %d, %d bytes: %.100s", response.StatusCode, len(got), got)
			}
		})
	}
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "b"}, nil })
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.NopCloser(iotest.ErrReader(errors.New("broken"))))
	request.ContentLength = 4
	if _, err := source.Transport(server.transport()).RoundTrip(request); err == nil || !strings.Contains(err.Error(), "broken") || script.runs.Load() != 0 {
		t.Errorf("a body that can't be read: error %v after %d runs", err, script.runs.Load())
	}
	// A body that does not come holds the caller no longer than the request may take.
	ctx, cancel := context.WithCancelCause(t.Context())
	never, writer := io.Pipe()
	defer writer.Close()
	request, _ = http.NewRequestWithContext(ctx, http.MethodPost, server.URL, never)
	request.ContentLength = 4
	gone := errors.New("gone")
	cancel(gone)
	if _, err := source.Transport(server.transport()).RoundTrip(request); !errors.Is(err, gone) || script.runs.Load() != 0 {
		t.Errorf("a body that does not come: error %v after %d runs", err, script.runs.Load())
	}
}

// A certificate that the server refuses with 401 is replaced, and the request sent again over a new connection.
func TestRejectedCertificate(t *testing.T) {
	server := serve(t, true, func(r *http.Request) bool { return common(r) == "b" })
	source, script, _ := scripted(t, execcredential.Options{}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: server.pair(t, name(run))}, nil
	}
	if got, status, err := get(&http.Client{Transport: source.Transport(server.transport())}, server.URL); got != " b " || status != 200 {
		t.Errorf("the server saw %q, status %d, error %v", got, status, err)
	}
}

// Several credentials of one account are tried in order, each with its own expiry and failures.
func TestSeveralCredentials(t *testing.T) {
	accepted := map[string]bool{"Bearer first": true, "Bearer second": true}
	var mu sync.Mutex
	accept := func(token string, yes bool) { mu.Lock(); accepted["Bearer "+token] = yes; mu.Unlock() }
	server := serve(t, true, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return accepted[r.Header.Get("Authorization")]
	})
	pool, clock := newPool(t, execcredential.Options{})
	broken := true
	first := &script{now: clock.Now, next: func(int) (execcredential.Material, error) {
		if broken {
			return execcredential.Material{}, errors.New("first is broken")
		}
		return execcredential.Material{Token: "first", Expires: clock.Now().Add(time.Hour)}, nil
	}}
	second := &script{now: clock.Now, next: func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "second", Expires: clock.Now().Add(10 * time.Hour)}, nil
	}}
	account := execcredential.NewAccount(pool.SourceOf(first), pool.SourceOf(second))
	client := &http.Client{Transport: account.Transport(server.transport())}
	expect := func(what, want string, status int) {
		t.Helper()
		if got, s, err := get(client, server.URL); s != status || !strings.HasPrefix(got, want) {
			t.Fatalf("%s: the server saw %q, status %d, error %v", what, got, s, err)
		}
	}
	expect("the first fails", "Bearer second", 200)
	expect("the first rests", "Bearer second", 200)
	if first.runs.Load() != 1 {
		t.Errorf("%d runs of the first", first.runs.Load())
	}
	broken = false
	clock.Advance(time.Second)
	expect("the first is back", "Bearer first", 200)
	accept("first", false)
	expect("the first is refused", "Bearer second", 200)
	before := server.requests.Load()
	expect("the first is known to be refused", "Bearer second", 200)
	if got := server.requests.Load() - before; got != 1 {
		t.Errorf("%d requests were sent for one", got)
	}
	accept("second", false)
	expect("both are refused", "unauthorized", 401)
	expect("both are known to be refused", "unauthorized", 401)
	accept("first", true)
	clock.Advance(20 * time.Minute)
	expect("the first is accepted again", "Bearer first", 200)
	if second.runs.Load() != 3 && second.runs.Load() != 2 {
		t.Errorf("%d runs of the second", second.runs.Load())
	}

	nothing := execcredential.NewAccount(
		pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return nil, errors.New("no A") })),
		pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return nil, errors.New("no B") })))
	if _, _, err := get(&http.Client{Transport: nothing.Transport(server.transport())}, server.URL); err == nil || !strings.Contains(err.Error(), "no A") || !strings.Contains(err.Error(), "no B") {
		t.Errorf("error %v", err)
	}
}
