package serving

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// cluster answers access reviews by the token of their sender.
type cluster struct {
	codes map[string]int  // by token, instead of 201
	allow map[string]bool // by token
	asked int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked++
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" || string(body) != selfReview {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if code := c.codes[token]; code != 0 {
		w.WriteHeader(code)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"status":{"allowed":%t}}`, c.allow[token])
}

func get(handler http.Handler, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w
}

func TestMetricsReaders(t *testing.T) {
	api := &cluster{allow: map[string]bool{"prometheus": true}, codes: map[string]int{"forged": 401, "unreviewed": 403, "slow": 500, "many": 429}}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	now := time.Unix(0, 0)
	// The credentials of the program itself are not sent.
	readers := &MetricsReaders{Cluster: &rest.Config{Host: server.URL, BearerToken: "prometheus"}, Now: func() time.Time { return now }}
	handler := NewHealth(func() error { return errors.New("not yet") }, prometheus.NewRegistry(), readers)

	for _, test := range []struct {
		authorization string
		code, asked   int
	}{
		{"", 401, 0},
		{"Bearer", 401, 0},
		{"Bearer  ", 401, 0},
		{"Basic cHJvbWV0aGV1czo=", 401, 0},
		{"prometheus", 401, 0},
		{"Bearer prometheus", 200, 1},
		{"bearer prometheus", 200, 1},
		{"Bearer other", 403, 1},
		{"Bearer unreviewed", 403, 1},
		{"Bearer forged", 401, 1},
		{"Bearer slow", 503, 1},
		{"Bearer many", 503, 1},
	} {
		api.asked = 0
		got := get(handler, test.authorization)
		if got.Code != test.code || api.asked != test.asked {
			t.Errorf("Authorization %q: code %d after %d reviews, want %d after %d", test.authorization, got.Code, api.asked, test.code, test.asked)
		}
		if shown := strings.Contains(got.Body.String(), "credence_build_info"); shown != (test.code == 200) {
			t.Errorf("Authorization %q: metrics are shown: %t", test.authorization, shown)
		}
		if challenged := got.Header().Get("WWW-Authenticate") == "Bearer"; challenged != (test.code == 401) {
			t.Errorf("Authorization %q: challenged: %t", test.authorization, challenged)
		}
	}

	// In an outage those read metrics who could before it, for an hour.
	api.codes["prometheus"], api.codes["other"] = 500, 500
	if got := get(handler, "Bearer prometheus").Code; got != 200 {
		t.Errorf("in an outage: %d, want 200", got)
	}
	if got := get(handler, "Bearer other").Code; got != 503 {
		t.Errorf("in an outage, without a right before it: %d, want 503", got)
	}
	now = now.Add(readersKeptFor)
	if got := get(handler, "Bearer prometheus").Code; got != 503 {
		t.Errorf("in an outage of an hour: %d, want 503", got)
	}

	// A right that is taken away counts at once, and is not remembered.
	api.codes["prometheus"] = 0
	if got := get(handler, "Bearer prometheus").Code; got != 200 {
		t.Errorf("after the outage: %d, want 200", got)
	}
	api.allow["prometheus"] = false
	if got := get(handler, "Bearer prometheus").Code; got != 403 {
		t.Errorf("without the right: %d, want 403", got)
	}
	api.codes["prometheus"] = 500
	if got := get(handler, "Bearer prometheus").Code; got != 503 {
		t.Errorf("without the right, in an outage: %d, want 503", got)
	}
}

func TestMetricsReadersAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	readers := &MetricsReaders{Now: func() time.Time { return now }}
	for i := range maxReaders + 10 {
		readers.keep([32]byte{byte(i)})
	}
	if got := len(readers.allowed); got != maxReaders {
		t.Errorf("%d tokens are remembered, want %d", got, maxReaders)
	}
	now = now.Add(readersKeptFor)
	readers.keep([32]byte{255})
	if got := len(readers.allowed); got != 1 {
		t.Errorf("an hour later %d tokens are remembered, want 1", got)
	}
}

func TestMetricsWithoutACluster(t *testing.T) {
	for _, test := range []struct {
		readers *MetricsReaders
		code    int
	}{
		{&MetricsReaders{}, 403},
		{&MetricsReaders{Anonymous: true}, 200},
	} {
		handler := NewHealth(func() error { return nil }, prometheus.NewRegistry(), test.readers)
		if got := get(handler, ""); got.Code != test.code {
			t.Errorf("anonymous %t: code %d, want %d", test.readers.Anonymous, got.Code, test.code)
		}
	}
}
