package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// rounds measures all subjects in turn, again and again, every second time in reverse order, so that what disturbs the machine
// disturbs them alike. It returns the medians by the subject's name. Each is warmed up before.
func rounds(ctx context.Context, s settings, workers int, subjects []subject) (map[string]measurement, error) {
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
	medians := map[string]measurement{}
	for name, list := range all {
		medians[name] = medianOf(list)
	}
	return medians, nil
}

// idleOf returns what each subject's processes use while nobody asks them anything. It is taken off what is measured, as it is
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

func medianOf(list []measurement) measurement {
	return measurement{
		perSecond: median(list, func(m measurement) float64 { return m.perSecond }),
		cpu:       time.Duration(median(list, func(m measurement) float64 { return float64(m.cpu) })),
		aside:     time.Duration(median(list, func(m measurement) float64 { return float64(m.aside) })),
		p99:       time.Duration(median(list, func(m measurement) float64 { return float64(m.p99) })),
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
