package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// subject is one thing that is measured.
type subject struct {
	name string
	// once does it one time.
	once func(ctx context.Context) error
	// pids are the processes whose CPU time counts.
	pids []int
	// aside are processes whose CPU time is reported beside it.
	aside []int
}

// measurement is what one round of a subject came to.
type measurement struct {
	operations int
	elapsed    time.Duration
	// cpu is the CPU time that all processes of the subject used; aside that of those beside it.
	cpu, aside time.Duration
	p99        time.Duration
}

// maxOperations bounds a round, whatever its time.
const maxOperations = 1_000_000

// load does a subject's work for a time, so many at once, and returns how long each took, in order of length.
func load(ctx context.Context, s subject, workers int, length time.Duration) ([]time.Duration, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, length+30*time.Second)
	defer cancel()
	var group sync.WaitGroup
	took, errs := make([][]time.Duration, workers), make([]error, workers)
	start := time.Now()
	for w := range workers {
		group.Go(func() {
			for begin, end := start, start; end.Sub(start) < length && len(took[w]) < maxOperations/workers; begin = end {
				if errs[w] = s.once(ctx); errs[w] != nil {
					cancel() // one failure ends the round: the others would measure something else
					return
				}
				end = time.Now()
				took[w] = append(took[w], end.Sub(begin))
			}
		})
	}
	group.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", s.name, err)
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, elapsed, nil
}

// idle is the CPU time per second that processes use without requests.
type idle struct{ cpu, aside float64 }

// measure does one round.
func measure(ctx context.Context, s subject, workers int, length time.Duration, idle idle) (measurement, error) {
	before, beforeAside, err := s.used()
	if err != nil {
		return measurement{}, err
	}
	took, elapsed, err := load(ctx, s, workers, length)
	if err != nil {
		return measurement{}, err
	}
	after, afterAside, err := s.used()
	if err != nil {
		return measurement{}, err
	}
	return measurement{
		operations: len(took),
		elapsed:    elapsed,
		cpu:        after - before - time.Duration(idle.cpu*float64(elapsed)),
		aside:      afterAside - beforeAside - time.Duration(idle.aside*float64(elapsed)),
		p99:        took[len(took)*99/100],
	}, nil
}

// used returns the CPU time of the subject's processes, and of those beside it.
func (s subject) used() (cpu, aside time.Duration, err error) {
	if cpu, err = cpuOf(s.pids...); err == nil {
		aside, err = cpuOf(s.aside...)
	}
	return cpu, aside, err
}
