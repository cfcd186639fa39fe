package contextdelivery

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
)

const (
	unknownVersion = "this resourceVersion is too old, or of another process of the server: list again"
	clusterChanged = "the WorkloadCluster of the caller has changed: list again"
)

// lookEvery is how often a watch without events checks the cluster of its user: one who was taken off it sees nothing more.
const lookEvery = time.Second

// markEvery is how often a watch sends a bookmark, so that a quiet one can go on from a recent resource version.
const markEvery = time.Minute

// watcher sends the events of one cluster to one client. It buffers none: a client that is too slow for the log starts again.
type watcher struct {
	*REST
	user string
	// cluster is nil for a user of none: the watch has no events but bookmarks.
	cluster  *clusters.Cluster
	selected func(*v1alpha1.ContextDelivery) bool
	initial  []*v1alpha1.ContextDelivery
	// marked requests a bookmark after the initial deliveries, bookmarks one from time to time.
	marked, bookmarks bool
	version           uint64

	result  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.once.Do(func() { close(w.stopped) }) }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context) {
	defer close(w.result)
	if !w.sendInitial(ctx) {
		return
	}
	marked, ticker := w.clock.Now(), w.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if !w.same() {
			w.fail(ctx, clusterChanged)
			return
		}
		events, changed, kept := w.index.after(w.version)
		if !kept {
			w.fail(ctx, unknownVersion)
			return
		}
		for _, each := range events {
			if w.cluster != nil && each.cluster == w.cluster.Name && w.selected(each.object) && !w.send(ctx, watch.Event{Type: each.kind, Object: seen(w.cluster, each.object)}) {
				return
			}
		}
		if w.version += uint64(len(events)); len(events) > 0 {
			continue
		}
		if now := w.clock.Now(); w.bookmarks && now.Sub(marked) >= markEvery {
			if marked = now; !w.mark(ctx, nil) {
				return
			}
		}
		select {
		case <-changed:
		case <-ticker.C():
		case <-ctx.Done():
			return
		case <-w.stopped:
			return
		}
	}
}

func (w *watcher) sendInitial(ctx context.Context) bool {
	for _, each := range w.initial {
		if w.selected(each) && !w.send(ctx, watch.Event{Type: watch.Added, Object: seen(w.cluster, each)}) {
			return false
		}
	}
	w.initial = nil
	return !w.marked || w.mark(ctx, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// mark sends a bookmark.
func (w *watcher) mark(ctx context.Context, annotations map[string]string) bool {
	return w.send(ctx, watch.Event{Type: watch.Bookmark, Object: &v1alpha1.ContextDelivery{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.FormatUint(w.version, 10), Annotations: annotations,
	}}})
}

// same reports whether the cluster still lists the user, and is unchanged; or whether the user is still in none.
func (w *watcher) same() bool {
	now, err := w.clusters.Of(w.user)
	if w.cluster == nil {
		return err == nil && now == nil
	}
	return err == nil && now != nil && (now == w.cluster || now.UID == w.cluster.UID && equality.Semantic.DeepEqual(now.Spec, w.cluster.Spec))
}

// fail ends the watch with 410: the client lists again, and learns why if it may not.
func (w *watcher) fail(ctx context.Context, why string) {
	status := apierrors.NewResourceExpired(why).Status()
	w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
}

func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-ctx.Done():
	case <-w.stopped:
	}
	return false
}
