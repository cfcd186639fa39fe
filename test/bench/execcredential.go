package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

const clientLibrary = "github.com/credence-id/credence/execcredential/clientgo"

// The last parts of the benchmarks' names there.
const (
	libraryOurs  = "execcredential"
	libraryPeer  = "client-go"
	libraryClone = "clone"
	libraryStub  = "stub"
)

// clientTime is how long the benchmarks of the client library may take. No round is begun after it.
const clientTime = 70 * time.Second

// series are benchmarks of the client library that are run alike, a process for each library.
type series struct {
	pattern   string
	libraries []string
	// count is how often each is run in a round. A time to fill would let a busy machine choose, and once it has chosen 1.
	count int
	// share is how many rounds of the settings are one of these, as some take long.
	share int
	// eachCPU is set if they run on one CPU, and then on all.
	eachCPU bool
}

// Memory is that of so many configs: both libraries are below their bounds with those that are used, and one of them is far above
// its with those that are forgotten.
const usedConfigs, forgottenConfigs = 1000, 10000

// clientSeries are all of them.
func clientSeries() []series {
	both := []string{libraryOurs, libraryPeer}
	return []series{
		{pattern: "^BenchmarkCachedRequest$", libraries: append(both, libraryClone, libraryStub), count: 50000, share: 1, eachCPU: true},
		{pattern: "^BenchmarkSetUp$", libraries: both, count: 20, share: 2},
		{pattern: "^BenchmarkStorm$/^(first|revoked)$", libraries: both, count: 5, share: 4},
		{pattern: "^BenchmarkStorm$/^(failure|expired)$", libraries: both, count: 1, share: 5},
		{pattern: "^BenchmarkDistinctConfigs$/^used$", libraries: both, count: usedConfigs, share: 5},
		{pattern: "^BenchmarkDistinctConfigs$/^forgotten$", libraries: both, count: forgottenConfigs, share: 5},
	}
}

// measureExecCredential runs the benchmarks of the client library and of client-go's own plugin, in turns.
func measureExecCredential(ctx context.Context, s settings, _ plane, t *table) error {
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := compileTests(ctx, clientLibrary, dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "bench: execcredential beside client-go")
	cpus, end := runtime.GOMAXPROCS(0), time.Now().Add(clientTime)
	all, err := clientRounds(ctx, s.rounds, cpus, binary.run, func() bool { return time.Now().After(end) })
	if err != nil {
		return err
	}
	rows, err := clientRows(all, cpus)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t.add(r)
	}
	return nil
}

// runner is testBinary.run.
type runner func(ctx context.Context, pattern string, count int, cpus []int) ([]goBenchmark, error)

// clientRounds does all series in turn, again and again, every second time in reverse order. It ends early, with a notice, once
// late returns true and each series has been done at least twice.
func clientRounds(ctx context.Context, rounds, cpus int, run runner, late func() bool) (figures, error) {
	all, list := figures{}, clientSeries()
	for round := range rounds {
		if round > slices.MaxFunc(list, func(a, b series) int { return a.share - b.share }).share && late() {
			fmt.Fprintf(os.Stderr, "bench: this machine is slow or busy: %d rounds were done of %d\n", round, rounds)
			break
		}
		for _, s := range list {
			if round%s.share != 0 {
				continue
			}
			if err := s.run(ctx, round/s.share, cpus, run, all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// run does one round of the series.
func (s series) run(ctx context.Context, round, cpus int, run runner, all figures) error {
	on := []int{cpus}
	if s.eachCPU && cpus > 1 {
		on = []int{1, cpus}
	}
	order := slices.Clone(s.libraries)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, library := range order {
		list, err := run(ctx, s.pattern+"/^"+library+"$", s.count, on)
		if err != nil {
			return err
		}
		all.add(list)
	}
	return nil
}
