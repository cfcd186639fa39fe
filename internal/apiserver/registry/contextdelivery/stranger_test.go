package contextdelivery_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/warning"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// Tools list and watch every kind that their user may list, and stop at a refusal.
func TestStrangersSeeNothing(t *testing.T) {
	w := newWorld(t)
	strangers := map[string]context.Context{"stranger": as(t, "stranger"), "no name": as(t, "")}
	empty := func(when string) {
		t.Helper()
		for name, ctx := range strangers {
			var told warnings
			list, err := w.List(warning.WithWarningRecorder(ctx, &told), &internalversion.ListOptions{})
			if err != nil || len(list.(*v1alpha1.ContextDeliveryList).Items) != 0 || list.(*v1alpha1.ContextDeliveryList).ResourceVersion == "" {
				t.Errorf("%s, %s: %v, %v", when, name, list, err)
			}
			if len(told) != 1 || !strings.Contains(told[0], v1alpha1.InNoWorkloadCluster) {
				t.Errorf("%s, %s: warnings %q", when, name, told)
			}
		}
	}
	w.set(func() { w.away = errors.New("away") })
	empty("before anything is known")
	w.set(func() { w.away = nil })
	w.fill(t, placed("foo", east, "dns=kiwi"))
	empty("with deliveries of others")
	list := testkit.Need(w.List(as(t, "east"), &internalversion.ListOptions{}))(t)
	for _, name := range []string{list.(*v1alpha1.ContextDeliveryList).Items[0].Name, "none"} {
		if _, err := w.Get(as(t, "stranger"), name, nil); code(err) != http.StatusNotFound {
			t.Errorf("%v, want 404", err)
		}
	}

	e := w.follow(t, "stranger", "")
	w.index.Set(source, placed("late", east, "api=kiwi"))
	w.want(t, "east", "api=kiwi role: k, dns=kiwi role: k")
	w.set(func() { w.clusters["stranger"] = cluster("east") })
	e.want(t, "ERROR 410 the WorkloadCluster of the caller has changed: list again", "closed")
}

// A watch without events sends a bookmark from time to time, and after the list that it streams.
func TestBookmarks(t *testing.T) {
	for name, initial := range map[string][]watch.EventType{"stranger": {watch.Bookmark}, "east": {watch.Added, watch.Bookmark}} {
		now := clocktesting.NewFakeClock(time.Now())
		w := newWorldAt(t, now)
		w.fill(t, placed("foo", east, "dns=kiwi"))
		watching := testkit.Need(w.Watch(as(t, name), &internalversion.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true}))(t)
		var last watch.Event
		for _, want := range initial {
			if last = <-watching.ResultChan(); last.Type != want {
				t.Errorf("%s: %v, want %s", name, last, want)
			}
		}
		testkit.Eventually(t, "the watch waits", now.HasWaiters)
		now.Step(time.Minute)
		if next := <-watching.ResultChan(); next.Type != watch.Bookmark || next.Object.(*v1alpha1.ContextDelivery).ResourceVersion != last.Object.(*v1alpha1.ContextDelivery).ResourceVersion {
			t.Errorf("%s: %v after a minute, want a bookmark with the version of %v", name, next, last)
		}
		watching.Stop()
	}
}
