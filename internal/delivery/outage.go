package delivery

import (
	"sort"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/delivery/renewal"
)

// The waits between looks at an identity cluster that does not answer.
const (
	firstProbe = time.Second
	lastProbe  = 20 * time.Second
)

// outage keeps Secrets from asking an identity cluster that does not answer. While it lasts, one Secret at a time asks; when one
// is answered, all the others go on, spread out, those whose tokens expire first before the others.
type outage struct {
	clock  clock.PassiveClock
	random func() float64
	// add queues a Secret again after a while.
	add func(key types.NamespacedName, after time.Duration)

	mu      sync.Mutex
	since   time.Time // zero: there is none
	probes  int
	next    time.Time // of the next probe
	probing types.NamespacedName
	waiting map[types.NamespacedName]time.Time // with the expiry of the token
	tried   map[types.NamespacedName]struct{}  // those that have probed in this round
}

func newOutage(clock clock.PassiveClock, random func() float64, add func(types.NamespacedName, time.Duration)) *outage {
	return &outage{clock: clock, random: random, add: add, waiting: map[types.NamespacedName]time.Time{}, tried: map[types.NamespacedName]struct{}{}}
}

// pass says whether a Secret may ask now. If not, it is remembered, and queued when its turn comes.
func (o *outage) pass(key types.NamespacedName, expiry time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return true
	}
	o.waiting[key] = expiry
	switch early := o.next.Sub(o.clock.Now()); {
	case o.probing == (types.NamespacedName{}):
		o.choose()
	case o.probing == key && early <= 0:
		return true
	case o.probing == key:
		o.add(key, early) // a change has brought it here, in place of its turn
	}
	return false
}

// failed says that the cluster did not answer a Secret.
func (o *outage) failed(key types.NamespacedName, expiry time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since, o.probes = o.clock.Now(), 0
	}
	o.waiting[key] = expiry
	if o.probing != (types.NamespacedName{}) && o.probing != key {
		return // it asked before the outage was noticed
	}
	o.tried[key] = struct{}{}
	o.choose()
}

// choose makes another Secret the next to ask, after a wait.
func (o *outage) choose() {
	if !o.pick() {
		return
	}
	wait := min(lastProbe, firstProbe<<min(o.probes, 5))
	wait = wait/2 + time.Duration(float64(wait/2)*o.random())
	o.probes++
	o.next = o.clock.Now().Add(wait)
	o.add(o.probing, wait)
}

// pick takes the Secret whose token expires first; of those that have asked already, none before all have. It says whether there
// is one.
func (o *outage) pick() bool {
	o.probing = types.NamespacedName{}
	for range 2 {
		var best time.Time
		for key, expiry := range o.waiting {
			if _, done := o.tried[key]; done {
				continue
			}
			if o.probing == (types.NamespacedName{}) || expiry.Before(best) {
				o.probing, best = key, expiry
			}
		}
		if o.probing != (types.NamespacedName{}) {
			return true
		}
		clear(o.tried)
	}
	return false
}

// answered says that the cluster has answered: whatever it said, the outage is over.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	keys := make([]types.NamespacedName, 0, len(o.waiting))
	for key := range o.waiting {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return o.waiting[keys[i]].Before(o.waiting[keys[j]]) })
	for i, key := range keys {
		o.add(key, renewal.Spread(i, len(keys)))
	}
	o.since, o.probing = time.Time{}, types.NamespacedName{}
	clear(o.waiting)
	clear(o.tried)
}

// forget gives up a Secret that does not wait, or is gone. When none waits, there is nobody to find out that the outage is over:
// the next to ask does.
func (o *outage) forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, key)
	delete(o.tried, key)
	if o.since.IsZero() {
		return
	}
	if len(o.waiting) == 0 {
		o.since, o.probing = time.Time{}, types.NamespacedName{}
		return
	}
	// Its turn was not used: the next has it.
	if o.probing == key && o.pick() {
		o.add(o.probing, max(0, o.next.Sub(o.clock.Now())))
	}
}

// lasts returns since when there is an outage, zero if there is none, and how many Secrets wait for its end.
func (o *outage) lasts() (time.Time, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, len(o.waiting)
}
