package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	same := func(v float64) float64 { return v }
	if got := median([]float64{9, 1, 2}, same); got != 2 {
		t.Errorf("median of three is %v, want 2", got)
	}
	if got := median([]float64{9, 1, 2, 4}, same); got != 3 {
		t.Errorf("median of four is %v, want 3", got)
	}
}

// The second round is the first one backwards, so that what grows or shrinks over time favors no subject.
func TestRoundsGoBackAndForth(t *testing.T) {
	var order []string
	subjects := []subject{}
	for _, name := range []string{"a", "b", "c"} {
		subjects = append(subjects, subject{name: name, pids: []int{os.Getpid()}, once: func(context.Context) error {
			if len(order) == 0 || order[len(order)-1] != name {
				order = append(order, name)
			}
			return nil
		}})
	}
	got, err := rounds(t.Context(), settings{round: 100 * time.Microsecond, rounds: 4, pause: time.Millisecond}, 1, subjects)
	if err != nil {
		t.Fatal(err)
	}
	// Warming up is a round of its own; where the direction changes the same subject comes twice.
	if want := []string{"a", "b", "c", "a", "b", "c", "b", "a", "b", "c", "b", "a"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if len(got) != 3 || got["a"].perSecond <= 0 || got["a"].p99 <= 0 {
		t.Errorf("medians %+v", got)
	}
}

func TestResult(t *testing.T) {
	got := resultOf([]measurement{
		{operations: 10, elapsed: time.Second, cpu: 100 * time.Millisecond, aside: -time.Millisecond, p99: 1},
		{operations: 30, elapsed: time.Second, cpu: 100 * time.Millisecond, p99: 9},
		{operations: 20, elapsed: time.Second, cpu: 400 * time.Millisecond, p99: 2},
	})
	if want := (result{operations: 60, perSecond: 20, cpu: 10 * time.Millisecond, p99: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLoadEndsAtTheFirstFailure(t *testing.T) {
	broken := errors.New("broken")
	var count atomic.Int64
	_, _, err := load(t.Context(), subject{name: "it", once: func(ctx context.Context) error {
		if count.Add(1) == 10 {
			return broken
		}
		return ctx.Err()
	}}, 4, time.Minute)
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestProcessClock(t *testing.T) {
	first, err := cpuOf(os.Getpid())
	if err != nil {
		t.Skip("this system shows no CPU clocks of processes: ", err)
	}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if again, err := cpuOf(os.Getpid()); err != nil || again > first {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	twice, err := cpuOf(os.Getpid(), os.Getpid())
	if err != nil || twice < 2*first || first <= 0 {
		t.Errorf("twice this process: %s, %v, want at least twice %s", twice, err, first)
	}
	if _, err := cpuOf(1 << 27); err == nil {
		t.Error("a process that cannot exist has a clock")
	}
}
