package main

import (
	"fmt"
	"strconv"
	"strings"
)

// goBenchmark is a line that a benchmark of Go's testing package prints
// (https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md).
type goBenchmark struct {
	// name has no "Benchmark" before it, and no number of CPUs after it.
	name string
	cpus int
	// metrics are by unit: "ns/op", "B/op" and those of the benchmark's own.
	metrics map[string]float64
}

// readBenchmarks returns the benchmarks that an output has, which may have other lines too. A line of a benchmark that is cut
// short, as by something that was printed in the middle of it, is an error.
func readBenchmarks(out string) ([]goBenchmark, error) {
	var list []goBenchmark
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, found := strings.CutPrefix(fields[0], "Benchmark")
		if !found || name == "" {
			continue
		}
		if len(fields) < 4 || len(fields)%2 != 0 {
			return nil, fmt.Errorf("%q is not the name of a benchmark, a count, and pairs of number and unit", strings.TrimSpace(line))
		}
		if count, err := strconv.Atoi(fields[1]); err != nil || count < 1 {
			return nil, fmt.Errorf("read how often %s ran: %q is not a count", fields[0], fields[1])
		}
		b := goBenchmark{metrics: map[string]float64{}}
		b.name, b.cpus = cutCPUs(name)
		for i := 2; i < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read the %s of %s: %w", fields[i+1], fields[0], err)
			}
			b.metrics[fields[i+1]] = value
		}
		list = append(list, b)
	}
	return list, nil
}

// cutCPUs takes the number of CPUs from the end of a name, which for one CPU has no number.
func cutCPUs(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if cpus, err := strconv.Atoi(name[i+1:]); err == nil && cpus > 1 {
			return name[:i], cpus
		}
	}
	return name, 1
}

// benchmarkMetrics returns what the one benchmark of that name came to.
func benchmarkMetrics(out, name string) (map[string]float64, error) {
	list, err := readBenchmarks(out)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		if b.name == name {
			return b.metrics, nil
		}
	}
	return nil, fmt.Errorf("the benchmark %s printed no result:\n%s", name, out)
}

// figure names a number that benchmarks come to.
type figure struct {
	name string
	cpus int
	unit string
}

// figures are what benchmarks came to, round by round.
type figures map[figure][]float64

func (f figures) add(list []goBenchmark) {
	for _, b := range list {
		for unit, value := range b.metrics {
			key := figure{b.name, b.cpus, unit}
			f[key] = append(f[key], value)
		}
	}
}

// medians reads figures, and remembers the first one that there is not.
type medians struct {
	figures
	err error
}

// of returns the median of a figure. Without one m.err is set, and the number means nothing.
func (m *medians) of(name string, cpus int, unit string) float64 {
	list := m.figures[figure{name, cpus, unit}]
	if len(list) == 0 {
		if m.err == nil {
			m.err = fmt.Errorf("the benchmark %s reported no %s with %d CPUs", name, unit, cpus)
		}
		return 0
	}
	return median(list, func(v float64) float64 { return v })
}

// faster returns how many times as fast a benchmark is on all CPUs as on one, of the same round: the machine is as busy for both.
func (m *medians) faster(name string, cpus int) float64 {
	one, all := m.figures[figure{name, 1, "ns/op"}], m.figures[figure{name, cpus, "ns/op"}]
	if len(one) == 0 || len(one) != len(all) {
		if m.err == nil {
			m.err = fmt.Errorf("the benchmark %s reported ns/op %d times with 1 CPU and %d times with %d", name, len(one), len(all), cpus)
		}
		return 0
	}
	var each []float64
	for i := range one {
		each = append(each, one[i]/all[i])
	}
	return median(each, func(v float64) float64 { return v })
}
