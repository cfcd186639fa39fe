package drift

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

const (
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
	// acted is when the last pod was evicted, or workload restarted, and waiting since when other pods of the workloads are not ready; zero if they are.
	acted, waiting time.Time
	// written is when the status was written last.
	written time.Time
	// progress is how far the pods were that others wait for; rolled is whether a restart had ended, and its workload drifted still; and refusal is why the
	// API refused to restart one.
	progress, refusal string
	rolled            bool
}

// notice takes over what a look has found.
func (m *memory) notice(now time.Time, generation int64, drifted []pod) {
	if len(drifted) == 0 {
		*m = memory{acted: m.acted, written: m.written}
		return
	}
	if m.wants == nil || m.generation != generation {
		m.generation, m.wants = generation, map[string]bool{}
	}
	maps.DeleteFunc(m.held, func(uid string, _ time.Time) bool {
		return !slices.ContainsFunc(drifted, func(p pod) bool { return p.uid == uid })
	})
	for _, p := range drifted {
		if want := p.want() + " " + p.Refused; !m.wants[want] {
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

// step is the next action for the drifted pods of a profile: a pod to evict, a workload to restart, or none, and the status that reports
// it.
type step struct {
	evict           *pod
	begin           *rollout
	restart         *accounts.ProfileRestart
	held            bool // budgets hold all workloads
	reason, message string
}

// none is the step without an action.
func (s step) none(profile *accounts.ServiceAccountProfile) step {
	if s.begin != nil {
		s.begin, s.restart = nil, profile.Status.Restart
	}
	s.evict = nil
	return s
}

// urgent reports whether the status has to be written now: before an action, or as the record of a restart has changed. All other statuses can wait.
func (s step) urgent(profile *accounts.ServiceAccountProfile) bool {
	return s.evict != nil || s.begin != nil || !equality.Semantic.DeepEqual(s.restart, profile.Status.Restart)
}

// next decides about the drifted pods of a profile. At most one is evicted: one that a controller makes again, whose other pods are all ready; and of
// these, one that is not ready before one that is. A pod of a Job would fail it. A pod whose like would be refused is left, as nothing would take
// its place.
func next(now moment, onChange accounts.OnChange, m *memory, drifted []pod, workloads map[string]workload) step {
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
	waits := step{reason: ReasonEvictions, message: fmt.Sprintf("they are evicted, one every %s", duration.HumanDuration(now.pace))}
	switch {
	case !now.paces(1, m.since) || !now.paces(1, m.acted):
		return waits
	case blocked != "": // one workload whose new pods do not become ready stops the others of the profile
		if m.waiting.IsZero() {
			m.waiting = now.Time
		}
		if now.paces(patience, m.waiting) {
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

// counted are the kinds whose pods are counted, and the place of each in the API.
var counted = []struct{ api, kind, resource string }{
	{"/apis/apps/v1", "ReplicaSet", "replicasets"},
	{"/apis/apps/v1", "StatefulSet", "statefulsets"},
	{"/apis/apps/v1", "DaemonSet", "daemonsets"},
	{"/apis/apps/v1", "Deployment", "deployments"},
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
