package drift

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

const (
	// settling is for how long nothing is evicted after a change: a person may take it back.
	settling = time.Minute
	// apart is the time between two evictions of a profile.
	apart = time.Minute
	// patience is for how long new pods may take to become ready before that is reported.
	patience = 5 * time.Minute
	// maxAtOnce bounds the evictions of one look, of all profiles.
	maxAtOnce = 10
	// maxTries bounds what is tried to evict in one namespace in one look.
	maxTries = 5
)

// memory is what is remembered of a profile from one look to the next. A process that has just begun to lead remembers nothing, so that it waits as
// after a change.
type memory struct {
	// wants are the differences that were seen of a generation, and since when the newest.
	generation int64
	wants      map[string]bool
	since      time.Time
	// held are the uids of pods that disruption budgets held, and when last: others are tried before them.
	held map[string]time.Time
	// evicted is when the last pod was, and waiting since when other pods of the workloads are not ready; zero if they are.
	evicted, waiting time.Time
}

// notice takes over what a look has found.
func (m *memory) notice(now time.Time, generation int64, drifted []pod) {
	if len(drifted) == 0 {
		*m = memory{evicted: m.evicted}
		return
	}
	if m.wants == nil || m.generation != generation {
		m.generation, m.wants = generation, map[string]bool{}
	}
	maps.DeleteFunc(m.held, func(uid string, _ time.Time) bool {
		return !slices.ContainsFunc(drifted, func(p pod) bool { return p.uid == uid })
	})
	for _, p := range drifted {
		if want := fmt.Sprintf("%s %s %s", p.Field, p.Wants, p.Refused); !m.wants[want] {
			m.wants[want], m.since = true, now
		}
	}
}

// hold remembers that a disruption budget holds a pod.
func (m *memory) hold(now time.Time, p *pod) {
	if m.held == nil {
		m.held = map[string]time.Time{}
	}
	m.held[p.uid] = now
}

// before reports whether a pod is to be evicted before another one: one that no budget held, or held longer ago; of these, one that is not ready.
func (m *memory) before(p, other *pod) bool {
	if order := m.held[p.uid].Compare(m.held[other.uid]); order != 0 {
		return order < 0
	}
	return other.ready && !p.ready
}

// workload is the controller of pods.
type workload struct {
	metav1.OwnerReference
	// known is false for a kind whose pods are not counted.
	known          bool
	desired, ready int
}

// step is what is done about the drifted pods of a profile: a pod to evict, or nothing, and what the condition has of it.
type step struct {
	evict           *pod
	reason, message string
}

// next decides about the drifted pods of a profile. At most one is evicted: one that a controller makes again, whose other pods are all ready; and of
// these, one that is not ready before one that is. A pod of a Job would fail it. A pod whose like would be refused is left, as nothing would take
// its place.
func next(now time.Time, onChange accounts.OnChange, m *memory, drifted []pod, workloads map[string]workload) step {
	if onChange != accounts.OnChangeEvict || len(drifted) == 0 {
		m.waiting = time.Time{}
		return step{reason: ReasonOutOfSpec}
	}
	unready := map[string]int{}
	for _, p := range drifted {
		if p.controller != nil && !p.ready {
			unready[string(p.controller.UID)]++
		}
	}
	var chosen *pod
	blocked, alone, refused := "", 0, 0
	for i := range drifted {
		p := &drifted[i]
		var w workload
		if p.controller != nil {
			w = workloads[string(p.controller.UID)]
		}
		switch {
		case p.Refused != "":
			refused++
		case !w.known:
			alone++
		case w.desired-w.ready > unready[string(w.UID)]:
			blocked = fmt.Sprintf("%s %s has %d of %d pods ready", w.Kind, w.Name, w.ready, w.desired)
		case chosen == nil || m.before(p, chosen):
			chosen = p
		}
	}
	if blocked == "" {
		m.waiting = time.Time{}
	}
	waits := step{reason: ReasonEvictions, message: "they are evicted, one a minute"}
	switch {
	case now.Sub(m.since) < settling || now.Sub(m.evicted) < apart:
		return waits
	case blocked != "": // one workload whose new pods do not become ready stops the others of the profile
		if m.waiting.IsZero() {
			m.waiting = now
		}
		if now.Sub(m.waiting) >= patience {
			return step{reason: ReasonStopped, message: "no more pods are evicted until new ones are ready: " + blocked}
		}
		return waits
	case chosen == nil:
		return step{reason: ReasonOutOfSpec, message: leftOut(alone, refused)}
	}
	waits.evict = chosen
	return waits
}

// leftOut words why pods are not evicted.
func leftOut(alone, refused int) string {
	var parts []string
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d of them are not evicted, as pods like them would be refused", refused))
	}
	if alone > 0 {
		parts = append(parts, fmt.Sprintf("%d of them are of no ReplicaSet, StatefulSet, DaemonSet or ReplicationController, and are not evicted: make them anew", alone))
	}
	return strings.Join(parts, "; ")
}

// counted are the kinds of controllers whose pods are counted, and the place of each in the API.
var counted = []struct{ api, kind, resource string }{
	{"/apis/apps/v1", "ReplicaSet", "replicasets"},
	{"/apis/apps/v1", "StatefulSet", "statefulsets"},
	{"/apis/apps/v1", "DaemonSet", "daemonsets"},
	{"/api/v1", "ReplicationController", "replicationcontrollers"},
}

// placeOf returns where a controller is in the API; false if its pods are not counted.
func placeOf(owner *metav1.OwnerReference) (api, resource string, ok bool) {
	i := slices.IndexFunc(counted, func(k struct{ api, kind, resource string }) bool {
		return k.kind == owner.Kind && (k.api == "/apis/"+owner.APIVersion || k.api == "/api/"+owner.APIVersion)
	})
	if i < 0 {
		return "", "", false
	}
	return counted[i].api, counted[i].resource, true
}
