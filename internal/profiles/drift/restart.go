package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// maxWants bounds the differences that are recorded of a restart.
const maxWants = 20

// rollout is a workload that is restarted by its template, and how far its pods are.
type rollout struct {
	kind, name string
	uid        types.UID
	version    string            // of the object
	at         string            // the time of its last restart, as its template has it
	labels     map[string]string // of its template
	kept       string            // why it is not restarted; empty if it is

	observed                                  bool // its controller has seen the template
	desired, total, updated, ready, available int

	// Of its drifted pods: those, what they want, without repetition, and how many are not ready, and would be refused.
	drifted          []*pod
	wants            []string
	unready, refused int
}

// rolled reports whether all its pods are new and available, as kubectl rollout status does.
func (r *rollout) rolled() bool {
	return r.observed && r.updated >= r.desired && r.total <= r.updated && r.available >= r.desired
}

// busy reports whether others make its pods anew, or pods that have not drifted are missing.
func (r *rollout) busy() bool {
	return !r.observed || r.updated < r.desired || r.total > r.updated || r.desired-r.ready > r.unready
}

// apart is the time between two restarts of one workload that the policy credence-profiles-restarts wants, whatever the pace is.
const apart = time.Minute

// follows reports whether a restart at a time is that much later than the last one.
func (r *rollout) follows(at string) bool {
	last, err := time.Parse(time.RFC3339, r.at)
	next, _ := time.Parse(time.RFC3339, at)
	return err != nil || next.Sub(last) >= apart
}

func (r *rollout) String() string { return r.kind + " " + r.name }

func (r *rollout) progress() string {
	return fmt.Sprintf("%s has %d of %d pods new, and %d available", r, min(r.updated, r.desired), r.desired, r.available)
}

// add adds a drifted pod.
func (r *rollout) add(p *pod) {
	r.drifted = append(r.drifted, p)
	if !slices.Contains(r.wants, p.want()) {
		r.wants = append(r.wants, p.want())
		slices.Sort(r.wants)
		r.wants = r.wants[:min(len(r.wants), maxWants)]
	}
	if !p.ready {
		r.unready++
	}
	if p.Refused != "" {
		r.refused++
	}
}

// only reports whether its pods have no other differences than those that a restart was for.
func (r *rollout) only(last *accounts.ProfileRestart) bool {
	return !slices.ContainsFunc(r.wants, func(want string) bool { return !slices.Contains(last.Wants, want) })
}

// budget is a PodDisruptionBudget.
type budget struct {
	name     string
	selector labels.Selector
	allows   bool
}

// holding returns the budget that does not allow the disruption of a workload, or an empty text.
func holding(budgets []budget, r *rollout) string {
	for _, b := range budgets {
		if !b.allows && (b.selector.Matches(labels.Set(r.labels)) || slices.ContainsFunc(r.drifted, func(p *pod) bool { return b.selector.Matches(labels.Set(p.labels)) })) {
			return b.name
		}
	}
	return ""
}

// restart decides about the workloads of a profile: one is restarted at a time, and the next one once all pods of it are new, available, and in
// spec. A restart is recorded before it is made, so that another process goes on with it: at the same time it is the same restart. A
// workload is not restarted twice for the same differences. alone is the number of drifted pods that no workload makes again by its template.
func restart(now moment, m *memory, last *accounts.ProfileRestart, found []*rollout, alone int, budgets []budget) step {
	slices.SortFunc(found, func(a, b *rollout) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	var candidates []*rollout
	var kept []string
	var under *accounts.ProfileRestart // what is left of last
	refused, blocked, unhelped, at := 0, "", "", now.UTC().Format(time.RFC3339)
	for _, r := range found {
		own := last != nil && last.UID == r.uid
		begun := own && (last.Begun || last.At == r.at)
		if own && (!begun && len(r.wants) > 0 || begun && !(len(r.wants) == 0 && r.rolled())) {
			under = last.DeepCopy()
			under.Begun = begun
		}
		switch {
		case begun && r.only(last):
			switch {
			case !r.rolled():
				blocked = r.progress()
			case len(r.wants) > 0:
				unhelped = fmt.Sprintf("%s was restarted, and its new pods differ still: %s", r, r.drifted[0].difference())
			}
		case len(r.wants) == 0:
		case r.refused > 0:
			refused += r.refused
		case r.kept != "":
			kept = append(kept, fmt.Sprintf("%s (%s)", r, r.kept))
		case !r.follows(at):
			blocked = cmp.Or(blocked, fmt.Sprintf("%s was restarted at %s", r, r.at))
		case begun: // its pods are what was wanted before, so that it need not become ready
			candidates = append(candidates, r)
		case r.busy():
			blocked = cmp.Or(blocked, r.progress())
		default:
			candidates = append(candidates, r)
		}
	}
	settled := m.rolled // the pods were listed before the workload was read: those that were old are gone at the next look
	m.rolled = unhelped != ""
	if blocked != m.progress || blocked == "" {
		m.progress, m.waiting = blocked, now.Time
	}
	waits := step{restart: under, reason: ReasonRestarts, message: "their workloads are restarted, one at a time"}
	stopped := func(why string) step {
		return step{restart: under, reason: ReasonNoRestarts, message: "no more workloads are restarted: " + why}
	}
	switch {
	case unhelped != "" && settled:
		return stopped(unhelped)
	case blocked != "" && now.paces(patience, m.waiting):
		return stopped(blocked)
	case blocked != "" || unhelped != "":
		return waits
	}
	// One that was to be restarted goes first.
	if i := slices.IndexFunc(candidates, func(r *rollout) bool { return under != nil && r.uid == under.UID }); i > 0 {
		candidates[0], candidates[i] = candidates[i], candidates[0]
	}
	for _, r := range candidates {
		if name := holding(budgets, r); name != "" {
			waits.held = true
			waits.message = fmt.Sprintf("%s is restarted once PodDisruptionBudget %s allows a disruption", r, name)
			continue
		}
		waits.begin, waits.held = r, false
		waits.message = fmt.Sprintf("%s is restarted, one workload at a time", r)
		if under == nil || under.UID != r.uid || under.Begun || !r.only(under) || !r.follows(under.At) {
			waits.restart = &accounts.ProfileRestart{Kind: r.kind, Name: r.name, UID: r.uid, Wants: r.wants, At: at}
		}
		if m.refusal != "" {
			waits.reason, waits.message = ReasonNoRestarts, m.refusal
		}
		return waits
	}
	if waits.held {
		return waits
	}
	return step{restart: under, reason: ReasonOutOfSpec, message: notRestarted(alone, refused, kept)}
}

// notRestarted words why workloads are not restarted.
func notRestarted(alone, refused int, kept []string) string {
	var parts []string
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d of them are of workloads that are not restarted, as pods like them would be refused", refused))
	}
	if len(kept) > 0 {
		parts = append(parts, "not restarted: "+wording.Some(kept))
	}
	if alone > 0 {
		parts = append(parts, fmt.Sprintf("%d of them are of no Deployment, StatefulSet or DaemonSet of the account, and are not restarted: make them anew", alone))
	}
	return strings.Join(parts, "; ")
}

// keeps returns why a workload is not restarted, or an empty text.
func (o *object) keeps() string {
	switch strategy := o.Spec.UpdateStrategy; {
	case o.Spec.Paused:
		return "it is paused"
	case strategy.Type == "OnDelete":
		return "its update strategy is OnDelete: delete its pods"
	case strategy.RollingUpdate.Partition > 0:
		return "its update strategy has a partition"
	}
	return ""
}

// rolloutOf is a workload, without pods.
func rolloutOf(kind string, o *object) *rollout {
	r := &rollout{
		kind: kind, name: o.Name, uid: o.UID, version: o.ResourceVersion, at: o.Spec.Template.Annotations[restartedAt], kept: o.keeps(),
		labels:   o.Spec.Template.Labels,
		observed: o.Status.ObservedGeneration >= o.Generation, desired: o.desired(), ready: o.ready(),
		total: o.Status.Replicas, updated: o.Status.UpdatedReplicas, available: o.Status.AvailableReplicas,
	}
	if o.perNode() {
		r.total, r.updated, r.available = o.Status.UpdatedNumberScheduled, o.Status.UpdatedNumberScheduled, o.Status.NumberAvailable
	}
	return r
}
