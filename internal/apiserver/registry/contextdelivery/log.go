package contextdelivery

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// maxEvents bounds the events that are kept for watches that are behind: enough for ten thousand objects that change at once. A watch that
// is further behind starts again with a list.
const maxEvents = 1 << 14

// maxBatch bounds how many events a watch takes at once.
const maxBatch = 256

// log holds the deliveries of all clusters, and the last changes.
type log struct {
	live map[string]map[string]*v1alpha1.ContextDelivery
	// events are those up to the resource version last, without gaps.
	events []event
	// first is the oldest resource version from which a watch can begin.
	first, last uint64
	// changed is closed with the next event.
	changed chan struct{}
}

// event is a change in a cluster. Its object is shared: do not change it.
type event struct {
	kind    watch.EventType
	cluster string
	object  *v1alpha1.ContextDelivery
}

func newLog(version uint64) *log {
	return &log{live: map[string]map[string]*v1alpha1.ContextDelivery{}, first: version, last: version, changed: make(chan struct{})}
}

// put stores a delivery, and returns the one that is kept.
func (l *log) put(at place, now *v1alpha1.ContextDelivery) *v1alpha1.ContextDelivery {
	before, kind := l.live[at.cluster][at.name], watch.Modified
	switch {
	case before == nil:
		kind = watch.Added
	case equality.Semantic.DeepEqual(before.Spec, now.Spec):
		return before
	}
	if l.live[at.cluster] == nil {
		l.live[at.cluster] = map[string]*v1alpha1.ContextDelivery{}
	}
	now = l.add(kind, at.cluster, now)
	l.live[at.cluster][at.name] = now
	return now
}

func (l *log) remove(at place) {
	before := l.live[at.cluster][at.name]
	if before == nil {
		return
	}
	delete(l.live[at.cluster], at.name)
	if len(l.live[at.cluster]) == 0 {
		delete(l.live, at.cluster)
	}
	l.add(watch.Deleted, at.cluster, before)
}

func (l *log) add(kind watch.EventType, cluster string, object *v1alpha1.ContextDelivery) *v1alpha1.ContextDelivery {
	l.last++
	own := *object
	own.ResourceVersion = strconv.FormatUint(l.last, 10)
	l.events = append(l.events, event{kind, cluster, &own})
	if n := len(l.events); n >= 2*maxEvents {
		l.events = append([]event(nil), l.events[n-maxEvents:]...)
		l.first = l.last - maxEvents
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return &own
}

// after returns the events after a resource version or, without any, a channel that the next event closes. It reports false for a version
// of another process, or one whose events are not kept any more.
func (l *log) after(version uint64) ([]event, <-chan struct{}, bool) {
	if version < l.first || version > l.last {
		return nil, nil, false
	}
	behind := l.events[len(l.events)-int(l.last-version):]
	return behind[:min(len(behind), maxBatch)], l.changed, true
}
