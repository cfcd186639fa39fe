package clusters

import (
	"context"
	"net/http"
	"regexp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

const (
	// seenEvery is how often the last sighting of a cluster is written.
	seenEvery = 5 * time.Minute
	// mostDue bounds the sightings that wait to be written. One beyond it is dropped; the next request is another one.
	mostDue = 100
)

// Status writes when a cluster was last seen.
type Status interface {
	Seen(ctx context.Context, cluster *Cluster, at time.Time, agentVersion string) error
}

// Note updates a status that is older than seenEvery, or has another version of the agent, and reports whether it did. The version may be
// empty.
func Note(status *v1alpha1.WorkloadClusterStatus, at time.Time, agentVersion string) bool {
	newer := agentVersion != "" && agentVersion != status.AgentVersion
	if !newer && status.LastSeenTime != nil && at.Sub(status.LastSeenTime.Time).Abs() < seenEvery {
		return false
	}
	status.LastSeenTime = &metav1.Time{Time: at.Truncate(time.Second)}
	if newer {
		status.AgentVersion = agentVersion
	}
	return true
}

// Sightings writes the status of clusters, each a few times in an hour. No request waits for it.
type Sightings struct {
	status Status
	clock  clock.PassiveClock
	due    chan sighting

	mu    sync.Mutex
	tried map[attempt]time.Time
}

type sighting struct {
	cluster      *Cluster
	at           time.Time
	agentVersion string
}

// attempt is tried once in seenEvery: an agent that sends many versions causes no more writes.
type attempt struct {
	cluster   types.UID
	versioned bool
}

// NewSightings returns Sightings. Nothing is written before they run.
func NewSightings(status Status, clock clock.PassiveClock) *Sightings {
	return &Sightings{status: status, clock: clock, due: make(chan sighting, mostDue), tried: map[attempt]time.Time{}}
}

// Saw notes a request of a user of a cluster, with the agent's version if it is known. Without a cluster, or on nil Sightings, it does
// nothing.
func (s *Sightings) Saw(cluster *Cluster, agentVersion string) {
	if s == nil || cluster == nil {
		return
	}
	now, status := s.clock.Now(), cluster.Status
	if !Note(&status, now, agentVersion) {
		return
	}
	key := attempt{cluster.UID, agentVersion != ""}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tried, ok := s.tried[key]; ok && now.Sub(tried).Abs() < seenEvery {
		return
	}
	select {
	case s.due <- sighting{cluster, now, agentVersion}:
		s.tried[key] = now
	default:
	}
}

// Run writes until ctx is done.
func (s *Sightings) Run(ctx context.Context) {
	for {
		select {
		case seen := <-s.due:
			if err := s.status.Seen(ctx, seen.cluster, seen.at, seen.agentVersion); err != nil {
				klog.FromContext(ctx).Error(err, "When a workload cluster was last seen is not written: it is tried again in some minutes", "workloadCluster", seen.cluster.Name)
			}
		case <-ctx.Done():
			return
		}
	}
}

// agentUserAgent matches the User-Agent of Credence's agents.
var agentUserAgent = regexp.MustCompile(`^credence-server/([0-9A-Za-z.+_()-]{1,64}) agent$`)

type versionKey struct{}

// WithAgentVersion keeps the version of the agent that reports a delivery, by its User-Agent, for AgentVersion.
func WithAgentVersion(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.Resource == "workloadidentities" && info.Subresource == "delivery" {
			if found := agentUserAgent.FindStringSubmatch(r.UserAgent()); found != nil {
				r = r.WithContext(context.WithValue(r.Context(), versionKey{}, found[1]))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// AgentVersion is the version that the caller states, or empty. It proves nothing.
func AgentVersion(ctx context.Context) string {
	version, _ := ctx.Value(versionKey{}).(string)
	return version
}
