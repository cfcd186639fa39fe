package main

import (
	"maps"
	"time"
)

// span is how much was done, in what time, with how much CPU of which process.
type span struct {
	done int
	took time.Duration
	cpu  map[string]time.Duration
}

func (s span) perSecond() float64 { return float64(s.done) / s.took.Seconds() }

func (s span) cpuPer(process string) float64 { return micro(s.cpu[process]) / float64(s.done) }

func (s span) cpuPerAll() float64 {
	all := 0.0
	for process := range s.cpu {
		all += s.cpuPer(process)
	}
	return all
}

// watched measures what a function does, which returns how much that was.
func watched(pids map[string]int, do func() (int, error)) (span, error) {
	before := map[string]time.Duration{}
	for name, pid := range pids {
		used, err := cpuOf(pid)
		if err != nil {
			return span{}, err
		}
		before[name] = used
	}
	begin := time.Now()
	done, err := do()
	if err != nil {
		return span{}, err
	}
	s := span{done: done, took: time.Since(begin), cpu: map[string]time.Duration{}}
	for name, pid := range pids {
		used, err := cpuOf(pid)
		if err != nil {
			return span{}, err
		}
		s.cpu[name] = used - before[name]
	}
	return s, nil
}

// plus adds up what was done at two times.
func (s span) plus(other span) span {
	cpu := maps.Clone(s.cpu)
	for name, used := range other.cpu {
		cpu[name] += used
	}
	return span{s.done + other.done, s.took + other.took, cpu}
}
