package contexts_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/test/testkit"
)

// The states of watches of Shoots.
const (
	shown     = iota // a watch shows what happens
	hangs            // a request for a watch gets no answer
	short            // a watch ends as soon as it has begun
	denied           // there is no watch
	collapsed        // a watch has an error as soon as it has begun
)

// watching is an API whose watches of Shoots are in a state.
type watching struct {
	dynamic.Interface
	state *atomic.Int32
}

func (w watching) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return watched{w.Interface.Resource(resource), resource.Resource == "shoots", w.state}
}

// IsWatchListSemanticsUnSupported is what client-go looks for.
func (watching) IsWatchListSemanticsUnSupported() bool { return true }

type watched struct {
	dynamic.NamespaceableResourceInterface
	shoots bool
	state  *atomic.Int32
}

func (w watched) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if w.shoots && w.state.Load() == hangs {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return w.NamespaceableResourceInterface.Watch(ctx, options)
}

// A reference that is gone counts for ten seconds at most, whatever keeps another watch from following the one that has ended.
func TestReferencesEndWithoutAWatch(t *testing.T) {
	const bound = 10 * time.Second // docs/reference/agents.md
	for name, state := range map[string]int32{"a watch that hangs": hangs, "short watches": short, "no watch": denied, "watches with errors": collapsed} {
		for _, lasting := range []time.Duration{0, time.Minute, 3 * time.Minute} {
			t.Run(name+" since "+lasting.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := cluster(shoot("fruit", "banana", "dns"), project("orchard", "fruit"))
					var now atomic.Int32
					shows := watch.NewFake()
					client.PrependWatchReactor("shoots", func(clienttesting.Action) (bool, watch.Interface, error) {
						w := watch.NewFakeWithChanSize(1, false)
						switch now.Load() {
						case short:
							w.Stop()
						case collapsed:
							w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
						case denied:
							return true, nil, errors.New("no route to host")
						default:
							w = shows
						}
						return true, w, nil
					})
					f, _ := follow(t, watching{client, &now}, shoots("shoot"))
					time.Sleep(time.Minute)
					testkit.Must(t, uses(f))
					now.Store(state)
					shows.Stop()
					time.Sleep(lasting)
					// Not seen by any watch.
					testkit.Must(t, testkit.Err(client.Resource(resource("shoots")).Namespace("fruit").Update(t.Context(), shoot("fruit", "banana"), metav1.UpdateOptions{})))
					gone := time.Now()
					for range 200 {
						time.Sleep(time.Second)
						synctest.Wait()
						if after := time.Since(gone); uses(f) == nil && after >= bound {
							t.Fatalf("%s after it has gone, the reference counts", after)
						}
					}
					shows = watch.NewFake()
					now.Store(shown)
					time.Sleep(3 * time.Minute)
					if err := uses(f); state != hangs && (err == nil || code(err) != 0) {
						t.Errorf("with a watch again: %v", err)
					}
				})
			})
		}
	}
}

// uses is nil while the Shoot refers to its identity, as far as that is known.
func uses(f *contexts.Follower) error {
	kind, err := f.Kind(group+"/"+version, "Shoot")
	if err != nil {
		return err
	}
	found, err := kind.Find("fruit", "banana")
	if err != nil {
		return err
	}
	return found.Uses(types.NamespacedName{Namespace: "fruit", Name: "dns"})
}
