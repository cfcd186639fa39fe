package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/apiserver/clusters"
)

// written records sightings, and keeps them as the status of the cluster unless away is set.
type written struct {
	start time.Time
	seen  chan string
	away  bool
}

func (w *written) Seen(_ context.Context, cluster *clusters.Cluster, at time.Time, version string) error {
	var err error
	if w.away {
		err = errors.New("storage is away")
	} else {
		clusters.Note(&cluster.Status, at, version)
	}
	w.seen <- fmt.Sprintf("%s %s %s", cluster.Name, at.Sub(w.start), version)
	return err
}

func TestSightings(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(start)
	w := &written{start: start, seen: make(chan string, 10)}
	s := clusters.NewSightings(w, clock)
	go s.Run(t.Context())
	east := &clusters.Cluster{}
	east.Name, east.UID = "east", "u"
	(*clusters.Sightings)(nil).Saw(east, "")
	s.Saw(nil, "")
	for _, step := range []struct {
		after   time.Duration
		version string
		away    bool
		want    string
	}{
		{0, "", false, "east 0s "},
		{time.Minute, "", false, ""},
		{2 * time.Minute, "v1", false, "east 2m0s v1"},
		{3 * time.Minute, "v2", false, ""},
		{6 * time.Minute, "v1", false, ""},
		{8 * time.Minute, "", true, "east 8m0s "},
		{9 * time.Minute, "", false, ""},
		{14 * time.Minute, "v2", false, "east 14m0s v2"},
	} {
		clock.SetTime(start.Add(step.after))
		w.away = step.away
		s.Saw(east, step.version)
		got := ""
		if step.want != "" {
			got = <-w.seen
		} else if len(w.seen) > 0 {
			got = <-w.seen
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.after, diff)
		}
	}
}

func TestAgentVersion(t *testing.T) {
	for agent, want := range map[string]string{
		"credence-server/v1.2.3 agent": "v1.2.3", "credence-server/agent": "", "kubectl/v1.2.3 agent": "", "credence-server/v1 agent\n": "", "credence-server/<b> agent": "", "": "",
	} {
		got := "not called"
		handler := clusters.WithAgentVersion(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = clusters.AgentVersion(r.Context()) }))
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("User-Agent", agent)
		handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{Resource: "workloadidentities", Subresource: "delivery"})))
		if got != want {
			t.Errorf("%q: version %q, want %q", agent, got, want)
		}
	}
}
