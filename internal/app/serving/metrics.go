package serving

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

const (
	reviewTimeout = 5 * time.Second
	// readersKeptFor is how long a token that could read metrics still can while the API does not answer, and maxReaders how many such
	// tokens are remembered: metrics are needed most during an outage.
	readersKeptFor = time.Hour
	maxReaders     = 64
	maxReview      = 1 << 20
	selfReview     = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/metrics","verb":"get"}}}`
)

// MetricsReaders decides who may read /metrics: users that a cluster allows to get this path, known by a bearer token, as at the
// cluster's own API server. The zero value refuses all requests.
type MetricsReaders struct {
	// Cluster is how the API is reached; its credentials are not used. nil: there is no API.
	Cluster *rest.Config
	// Anonymous allows all requests.
	Anonymous bool
	Now       func() time.Time // nil: time.Now

	// One client of the API for all requests.
	client *http.Client
	url    string
	broken error

	mu      sync.Mutex
	allowed map[[sha256.Size]byte]time.Time // by token: when it was last allowed
}

// AddAnonymousMetrics adds the flag --anonymous-metrics.
func AddAnonymousMetrics(flags *pflag.FlagSet, value *bool) {
	flags.BoolVar(value, "anonymous-metrics", false, "answer /metrics to all who can reach the port, rather than to users with a token whom the cluster allows to get the path /metrics")
}

// guard passes on the requests of those who may read metrics.
func (m *MetricsReaders) guard(next http.Handler) http.Handler {
	if m.Cluster != nil {
		m.client, m.url, m.broken = m.connect()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, problem := m.review(r)
		switch code {
		case http.StatusOK:
			next.ServeHTTP(w, r)
			return
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		answer(w, code, problem)
	})
}

func (m *MetricsReaders) review(r *http.Request) (int, string) {
	if m.Anonymous {
		return http.StatusOK, ""
	}
	if m.Cluster == nil {
		return http.StatusForbidden, "this server knows no cluster whose users could read metrics: it answers with --anonymous-metrics"
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return http.StatusUnauthorized, "metrics need a bearer token of the cluster"
	}
	code, err := m.ask(r.Context(), token)
	sum := sha256.Sum256([]byte(token))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if at, ok := m.allowed[sum]; ok && m.now().Sub(at) < readersKeptFor {
			return http.StatusOK, ""
		}
		return http.StatusServiceUnavailable, "the API of the cluster does not answer whether this token may read metrics"
	}
	if code == http.StatusOK {
		m.keep(sum)
		return code, ""
	}
	delete(m.allowed, sum)
	if code == http.StatusUnauthorized {
		return code, "the cluster does not accept this token"
	}
	return code, "this user may not get the path /metrics: the ClusterRole credence:metrics:reader allows it"
}

// ask has the API review the right of the token's own user: that needs no right of this program, and no second request for the
// token. The code is 200, 401 or 403; an error is not an answer.
func (m *MetricsReaders) ask(ctx context.Context, token string) (int, error) {
	if m.broken != nil {
		return 0, m.broken
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader(selfReview))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := m.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return response.StatusCode, nil
	case http.StatusCreated:
	default:
		return 0, errors.New(response.Status)
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReview)).Decode(&review); err != nil {
		return 0, err
	}
	if !review.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// connect returns a client without credentials, and the address of access reviews.
func (m *MetricsReaders) connect() (*http.Client, string, error) {
	config := rest.AnonymousClientConfig(m.Cluster)
	config.Timeout = reviewTimeout
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", err
	}
	client, err := rest.HTTPClientFor(config)
	return client, server.JoinPath("apis/authorization.k8s.io/v1/selfsubjectaccessreviews").String(), err
}

func (m *MetricsReaders) keep(token [sha256.Size]byte) {
	now := m.now()
	if m.allowed == nil {
		m.allowed = map[[sha256.Size]byte]time.Time{}
	}
	if len(m.allowed) >= maxReaders {
		for old, at := range m.allowed {
			if now.Sub(at) >= readersKeptFor {
				delete(m.allowed, old)
			}
		}
	}
	if _, known := m.allowed[token]; known || len(m.allowed) < maxReaders {
		m.allowed[token] = now
	}
}

func (m *MetricsReaders) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}
