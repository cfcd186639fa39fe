// Package outage holds token requests back while there is no answer to them. In go the results of requests, out comes which Secret may
// request next, and when. It requests nothing itself.
package outage

import (
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/delivery/renewal"
)

// The waits between requests to an identity cluster that does not answer.
const (
	firstProbe = time.Second
	lastProbe  = 20 * time.Second
)

// Outage keeps Secrets from requesting where there is no answer: for the identities of one namespace, or, where the identity cluster
// does not answer reads either, for all. In either case one Secret at a time requests; when it is answered, the others go on,
// spread out. A Secret that failed goes behind those that did not; else the one whose token expires first is the next.
type Outage struct {
	clock clock.PassiveClock
	// Random is uniform in [0, 1).
	Random func() float64
	// Add queues a Secret again after a while.
	Add func(key types.NamespacedName, after time.Duration)

	mu       sync.Mutex
	all      *silence                     // of the whole cluster; nil: it answers
	of       map[string]*silence          // of single namespaces of identities
	answered time.Time                    // when the cluster last answered a request for a token
	failures map[types.NamespacedName]int // in a row, by Secret
}

// silence is what does not answer, and the Secrets that wait for it.
type silence struct {
	since   time.Time
	probes  int
	next    time.Time                          // of the next probe
	probing types.NamespacedName               // whose turn is next
	waiting map[types.NamespacedName]time.Time // with the expiry of the token
}

// New returns an Outage of an identity cluster that answers.
func New(clock clock.PassiveClock, random func() float64, add func(types.NamespacedName, time.Duration)) *Outage {
	return &Outage{clock: clock, Random: random, Add: add, of: map[string]*silence{}, failures: map[types.NamespacedName]int{}}
}

// Pass reports whether a Secret may request a token of an identity of a namespace now. If not, the Secret is remembered, and queued
// when its turn comes.
func (o *Outage) Pass(key types.NamespacedName, namespace string, expiry time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.silenceOf(namespace)
	if s == nil {
		return true
	}
	s.waiting[key] = expiry
	switch early := s.next.Sub(o.clock.Now()); {
	case s.probing == (types.NamespacedName{}):
		o.choose(s, 0)
	case s.probing == key && early <= 0:
		return true
	case s.probing == key:
		o.Add(key, early) // a change has brought it here, in place of its turn
	}
	return false
}

func (o *Outage) silenceOf(namespace string) *silence {
	if s := o.of[namespace]; s != nil {
		return s
	}
	return o.all
}

// Unanswered records that a Secret got no answer for an identity of a namespace. reads reports whether the identity cluster answers
// reads, which no webhook and no policy of a namespace can prevent: then other namespaces need not wait, however many fail.
func (o *Outage) Unanswered(key types.NamespacedName, namespace string, expiry time.Time, reads bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures[key]++
	var s *silence
	if reads {
		o.end()
		s = o.own(namespace)
	} else {
		s = o.begin(namespace)
	}
	s.waiting[key] = expiry
	if s.probing != (types.NamespacedName{}) && s.probing != key {
		return // it requested before the silence was noticed
	}
	o.choose(s, 0)
}

// begin returns the silence of the whole cluster. The Secrets of a namespace that has found it out wait for that, and no more for their namespace.
func (o *Outage) begin(namespace string) *silence {
	if o.all == nil {
		o.all = o.newSilence()
	}
	if own := o.of[namespace]; own != nil {
		maps.Copy(o.all.waiting, own.waiting)
		delete(o.of, namespace)
	}
	return o.all
}

// end ends the silence of the whole cluster.
func (o *Outage) end() {
	if s := o.all; s != nil {
		o.all = nil
		o.release(s)
	}
}

// own returns the silence of a namespace.
func (o *Outage) own(namespace string) *silence {
	s := o.of[namespace]
	if s == nil {
		s = o.newSilence()
		o.of[namespace] = s
	}
	return s
}

func (o *Outage) newSilence() *silence {
	return &silence{since: o.clock.Now(), waiting: map[types.NamespacedName]time.Time{}}
}

// Answered records that the cluster has answered for a namespace, a refusal too: if there was an outage, it is over.
func (o *Outage) Answered(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached()
	if s := o.of[namespace]; s != nil {
		delete(o.of, namespace)
		o.release(s)
	}
}

// Throttled records that the cluster has answered that requests for a namespace are too many: the next one comes after a while.
func (o *Outage) Throttled(key types.NamespacedName, namespace string, expiry time.Time, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached()
	o.failures[key]++
	s := o.own(namespace)
	s.waiting[key] = expiry
	o.choose(s, after)
}

// reached records that the cluster answers.
func (o *Outage) reached() {
	o.answered = o.clock.Now()
	o.end()
}

// release queues all Secrets that wait for an answer, spread out.
func (o *Outage) release(s *silence) {
	keys := slices.Collect(maps.Keys(s.waiting))
	sort.Slice(keys, func(i, j int) bool { return o.before(s, keys[i], keys[j]) })
	for i, key := range keys {
		o.Add(key, renewal.Spread(i, len(keys)))
	}
}

// before reports whether the turn of a comes before that of b.
func (o *Outage) before(s *silence, a, b types.NamespacedName) bool {
	if o.failures[a] != o.failures[b] {
		return o.failures[a] < o.failures[b]
	}
	return s.waiting[a].Before(s.waiting[b])
}

// choose makes a Secret the next to request, after a wait that grows and is at least as long as given.
func (o *Outage) choose(s *silence, least time.Duration) {
	if !o.pick(s) {
		return
	}
	wait := min(lastProbe, firstProbe<<min(s.probes, 5))
	wait = max(least, wait/2+time.Duration(float64(wait/2)*o.Random()))
	s.probes++
	s.next = o.clock.Now().Add(wait)
	o.Add(s.probing, wait)
}

// pick gives the turn to a Secret, and reports whether there is one.
func (o *Outage) pick(s *silence) bool {
	s.probing = types.NamespacedName{}
	for key := range s.waiting {
		if s.probing == (types.NamespacedName{}) || o.before(s, key, s.probing) {
			s.probing = key
		}
	}
	return s.probing != types.NamespacedName{}
}

// Forget drops a Secret that does not wait, or is gone. When the last one is dropped, no request can find the end of the outage:
// it counts as over.
func (o *Outage) Forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failures, key)
	for namespace, s := range o.of {
		if o.leave(s, key) {
			delete(o.of, namespace)
		}
	}
	if o.all != nil && o.leave(o.all, key) {
		o.all = nil
	}
}

// leave takes a Secret out of a silence, and reports whether the silence is empty. An unused turn is passed on.
func (o *Outage) leave(s *silence, key types.NamespacedName) bool {
	delete(s.waiting, key)
	if s.probing == key && o.pick(s) {
		o.Add(s.probing, max(0, s.next.Sub(o.clock.Now())))
	}
	return len(s.waiting) == 0
}

// Lasts returns since when the identity cluster has answered for no namespace, zero if it does, and how many Secrets wait for an answer.
// Where it answers reads, two namespaces are evidence that have failed since the last answer: one can fail by a webhook of its own.
func (o *Outage) Lasts() (time.Time, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first time.Time
	namespaces, waiting := 0, 0
	for _, s := range o.of {
		waiting += len(s.waiting)
		if !s.since.After(o.answered) {
			continue
		}
		namespaces++
		if first.IsZero() || s.since.Before(first) {
			first = s.since
		}
	}
	if o.all != nil {
		waiting += len(o.all.waiting)
		if first.IsZero() || o.all.since.Before(first) {
			first = o.all.since
		}
	}
	if o.all == nil && namespaces < 2 {
		return time.Time{}, waiting
	}
	return first, waiting
}
