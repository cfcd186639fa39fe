package install

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// patience is for how long a client repeats what fails: 500, 503, lost connections, and 429, with which kube-apiserver answers while it ends.
const patience = 30 * time.Second

// failure is a request that was answered with an error, or not at all.
type failure struct {
	kind string
	at   time.Time
	text string
}

// lostByClient is how kube-apiserver ends a request with a body that chose its connection to an aggregated server just when the server asked its
// clients to leave. The server has not seen the request, and can't prevent that (docs/decisions/0054-clients-leave-before-a-server-stops.md).
const lostByClient = "cannot rewind body after connection loss"

// tokenClients request tokens. With the one that creates identities these are the clients whose requests to the API server have a body. Each has one request
// at a time, so that no more than atOnce can be lost when an API server stops.
const tokenClients, atOnce = 2, tokenClients + 1

// pace is how often a client requests at most, so that a small machine has time for the changes.
const pace = 50 * time.Millisecond

// load is a few clients that request all the time. No client of it repeats a request before the failure is counted.
type load struct {
	client *http.Client
	host   string

	mu sync.Mutex
	tally
}

// tally is what became of requests.
type tally struct {
	failures []failure
	answered map[string]int
	slowest  time.Duration // that a request took, with its repetitions
	lost     int           // by the client
	fatal    []string      // what no repetition would mend
	timeouts []string      // of reviews
}

// request is one of a kind. Of several tries one creates, and others may find that it is there already.
type request struct {
	kind, method, path, body string
	accept                   func(code int, body string) bool
}

// begin starts the clients of the namespace default; stop waits for them.
func begin(t *testing.T, admin *rest.Config) (l *load, stop func()) {
	t.Helper()
	config := rest.CopyConfig(admin)
	config.Timeout = patience
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	l = &load{client: client, host: admin.Host, tally: tally{answered: map[string]int{}}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	run := func(requests func(n int) []request) {
		running.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				for _, r := range requests(n) {
					l.insist(r)
				}
				<-tick.C
			}
		})
	}
	for range tokenClients {
		run(func(int) []request { return []request{tokenRequest()} })
	}
	run(podRequests)
	run(identityRequests)
	run(func(int) []request { return []request{documentRequest()} })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return l, stop
}

func answers(codes ...int) func(int, string) bool {
	return func(code int, _ string) bool {
		for _, want := range codes {
			if code == want {
				return true
			}
		}
		return false
	}
}

const identitiesPath = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/default/workloadidentities"

func tokenRequest() request {
	return request{"token", http.MethodPost, identitiesPath + "/app/token", `{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "TokenRequest", "spec": {}}`, answers(http.StatusCreated)}
}

func documentRequest() request {
	return request{"document", http.MethodGet, "/api/v1/namespaces/credence-system/services/https:credence-discovery:https/proxy/.well-known/openid-configuration", "", answers(http.StatusOK)}
}

// podRequests create a pod, which the webhook gives its identity, and delete it. No scheduler looks at it.
func podRequests(n int) []request {
	const path = "/api/v1/namespaces/default/pods"
	name := fmt.Sprintf("load-%d", n)
	body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"schedulerName": "no-scheduler", "containers": [{"name": "app", "image": "app"}]}}`, name)
	return []request{
		{"pod", http.MethodPost, path, body, func(code int, body string) bool {
			return code == http.StatusCreated && strings.Contains(body, "credence-token-") || code == http.StatusConflict
		}},
		{"pod deletion", http.MethodDelete, path + "/" + name + "?gracePeriodSeconds=0", "", answers(http.StatusOK, http.StatusNotFound)},
	}
}

func identityRequests(n int) []request {
	name := fmt.Sprintf("load-%d", n)
	body := fmt.Sprintf(`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "metadata": {"name": %q}, "spec": {"audiences": ["a"], "targetSystem": {"type": "generic"}}}`, name)
	return []request{
		{"identity", http.MethodPost, identitiesPath, body, answers(http.StatusCreated, http.StatusConflict)},
		{"identity list", http.MethodGet, identitiesPath, "", answers(http.StatusOK)},
		{"identity deletion", http.MethodDelete, identitiesPath + "/" + name, "", answers(http.StatusOK, http.StatusNotFound)},
	}
}

// insist repeats a request until it succeeds. Every failure counts.
func (l *load) insist(r request) {
	begun := time.Now()
	for {
		code, body, err := l.do(r)
		if err == nil && r.accept(code, body) {
			break
		}
		text := fmt.Sprintf("%d %s", code, body)
		if err != nil {
			text = err.Error()
		}
		l.fail(r.kind, text, err != nil || code == http.StatusInternalServerError || code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests, time.Since(begun))
		if time.Since(begun) > patience {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered[r.kind]++
	l.slowest = max(l.slowest, time.Since(begun))
}

func (l *load) fail(kind, text string, transient bool, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := failure{kind, time.Now(), text}
	if strings.Contains(text, lostByClient) {
		l.lost++
		return
	}
	l.failures = append(l.failures, f)
	switch {
	case !transient:
		l.fatal = append(l.fatal, f.String()+": a code that clients do not repeat")
	case after > patience:
		l.fatal = append(l.fatal, fmt.Sprintf("%s: repeated for %s", f, after))
	case (strings.Contains(text, "failed calling webhook") || strings.Contains(text, "could not decide")) && (strings.Contains(text, "deadline exceeded") || strings.Contains(text, "Timeout")):
		l.timeouts = append(l.timeouts, f.String()+": a review timed out")
	}
}

func (f failure) String() string {
	return fmt.Sprintf("%s %s: %.500s", f.at.Format("15:04:05.000"), f.kind, f.text)
}

func (l *load) do(r request) (int, string, error) {
	// The body is given as bytes.Reader is: it can be sent again by the transport, if the connection was never used for it.
	made, err := http.NewRequest(r.method, l.host+r.path, bytes.NewReader([]byte(r.body)))
	if err != nil {
		return 0, "", err
	}
	made.Header.Set("Content-Type", "application/json")
	response, err := l.client.Do(made)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// goesOn waits until a request of each kind has been answered from now on.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	count := func() map[string]int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return maps.Clone(l.answered)
	}
	before := count()
	eventually(t, func(context.Context) error {
		now := count()
		for _, kind := range []string{"token", "pod", "identity", "document"} {
			if now[kind] == before[kind] {
				return fmt.Errorf("no request of kind %s is answered", kind)
			}
		}
		return nil
	})
}

// take returns what was counted since the last time.
func (l *load) take() (taken tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, l.tally = l.tally, tally{answered: map[string]int{}}
	return taken
}
