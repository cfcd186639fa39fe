package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestManyDoesEachOnce(t *testing.T) {
	var mu sync.Mutex
	done := map[int]int{}
	if err := many(t.Context(), 100, 7, func(_ context.Context, i int) error {
		mu.Lock()
		defer mu.Unlock()
		done[i]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if done[i] != 1 {
			t.Errorf("%d was done %d times", i, done[i])
		}
	}
}

func TestManyStopsAtTheFirstError(t *testing.T) {
	wrong, done := errors.New("wrong"), 0
	err := many(t.Context(), 1000, 1, func(context.Context, int) error {
		if done++; done == 3 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || done != 3 {
		t.Errorf("done %d times, then %v; want 3 and %v", done, err, wrong)
	}
}

func TestUntilSaysWhyItGaveUp(t *testing.T) {
	wrong := errors.New("not yet")
	err := until(t.Context(), "it is so", 20*time.Millisecond, time.Millisecond, func(context.Context) (bool, error) { return false, wrong })
	if !errors.Is(err, wrong) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("gave up with %v", err)
	}
}

func TestReplacedArguments(t *testing.T) {
	args := []string{"agent", "--health-port", "1", "--kubeconfig", "file"}
	got := replaced(args, map[string]string{"--health-port": "2", "--lease": "mine"})
	if diff := cmp.Diff([]string{"agent", "--health-port", "2", "--kubeconfig", "file", "--lease", "mine"}, got); diff != "" {
		t.Error(diff)
	}
	if args[2] != "1" {
		t.Error("the original has changed")
	}
}

func TestSpansAddUp(t *testing.T) {
	first := span{done: 10, took: time.Second, cpu: map[string]time.Duration{"server": 30 * time.Millisecond, "client": 10 * time.Millisecond}}
	second := span{done: 30, took: 3 * time.Second, cpu: map[string]time.Duration{"server": 10 * time.Millisecond}}
	both := first.plus(second)
	if both.perSecond() != 10 || both.cpuPer("server") != 1000 || both.cpuPerAll() != 1250 {
		t.Errorf("%v per second, %v µs of the server, %v µs of all, want 10, 1000 and 1250", both.perSecond(), both.cpuPer("server"), both.cpuPerAll())
	}
	if first.cpu["server"] != 30*time.Millisecond {
		t.Error("the first has changed")
	}
}
