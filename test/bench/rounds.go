package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// rounds measures all subjects in turn, again and again, every second time in reverse order, so that what disturbs the machine
// disturbs them alike. It returns the results by the subject's name. Each is warmed up before.
func rounds(ctx context.Context, s settings, workers int, subjects []subject) (map[string]result, error) {
	idle, err := idleOf(ctx, s.pause, subjects)
	if err != nil {
		return nil, err
	}
	for _, subject := range subjects {
		if _, _, err := load(ctx, subject, workers, 2*s.round); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
	}
	fmt.Fprintf(os.Stderr, "bench: %d subjects, %d at a time\n", len(subjects), workers)
	all := map[string][]measurement{}
	for round := range s.rounds {
		order := slices.Clone(subjects)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, subject := range order {
			m, err := measure(ctx, subject, workers, s.round, idle[subject.name])
			if err != nil {
				return nil, err
			}
			all[subject.name] = append(all[subject.name], m)
		}
	}
	results := map[string]result{}
	for name, list := range all {
		results[name] = resultOf(list)
	}
	return results, nil
}

// idleOf returns what each subject's processes use without requests. It is taken off what is measured, as it is
// not the requests' doing: a control plane has much to do for itself.
func idleOf(ctx context.Context, pause time.Duration, subjects []subject) (map[string]idle, error) {
	before := map[string][2]time.Duration{}
	for _, s := range subjects {
		cpu, aside, err := s.used()
		if err != nil {
			return nil, err
		}
		before[s.name] = [2]time.Duration{cpu, aside}
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	all := map[string]idle{}
	for _, s := range subjects {
		cpu, aside, err := s.used()
		if err != nil {
			return nil, err
		}
		all[s.name] = idle{
			cpu:   (cpu - before[s.name][0]).Seconds() / pause.Seconds(),
			aside: (aside - before[s.name][1]).Seconds() / pause.Seconds(),
		}
	}
	return all, nil
}

// result is what all rounds of a subject came to.
type result struct {
	operations int
	perSecond  float64
	cpu, aside time.Duration
	p99        time.Duration
}

// resultOf returns the medians of rate and latency, which others on the machine disturb, and all CPU time over all operations:
// a garbage collection that comes every few seconds would never be in a median.
func resultOf(list []measurement) result {
	var sum measurement
	for _, m := range list {
		sum.operations += m.operations
		sum.cpu += m.cpu
		sum.aside += m.aside
	}
	return result{
		operations: sum.operations,
		perSecond:  median(list, func(m measurement) float64 { return float64(m.operations) / m.elapsed.Seconds() }),
		cpu:        sum.cpu / time.Duration(sum.operations),
		aside:      max(0, sum.aside/time.Duration(sum.operations)),
		p99:        time.Duration(median(list, func(m measurement) float64 { return float64(m.p99) })),
	}
}

// median returns the value in the middle, or the mean of the two there.
func median[T any](list []T, of func(T) float64) float64 {
	values := make([]float64, 0, len(list))
	for _, item := range list {
		values = append(values, of(item))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
