package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadBenchmarks(t *testing.T) {
	const out = `goos: linux
cpu: Benchmark 9000
BenchmarkStorm/first/client-go-2         	       1	  13886246 ns/op	         0 failures/storm	         1.000 runs/storm
BenchmarkCachedRequest/client-go         	   81672	      2564 ns/op
BenchmarkCachedRequest/of-1-16           	   81672	      1e+03 ns/op
BenchmarkCachedRequest/of-1              	       1	         5 ns/op
Benchmarks follow
PASS
`
	got, err := readBenchmarks(strings.Replace(out, "Benchmarks follow\n", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	want := []goBenchmark{
		{"Storm/first/client-go", 2, map[string]float64{"ns/op": 13886246, "failures/storm": 0, "runs/storm": 1}},
		{"CachedRequest/client-go", 1, map[string]float64{"ns/op": 2564}},
		{"CachedRequest/of-1", 16, map[string]float64{"ns/op": 1000}},
		{"CachedRequest/of-1", 1, map[string]float64{"ns/op": 5}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(goBenchmark{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := readBenchmarks(out); err == nil {
		t.Error("a line that only begins like one of a benchmark was let pass")
	}
}

func TestBrokenLinesOfBenchmarks(t *testing.T) {
	for _, line := range []string{
		"BenchmarkA-2",
		"BenchmarkA-2  1  5",
		"BenchmarkA-2  1  5 ns/op  7",
		"BenchmarkA-2  0  5 ns/op",
		"BenchmarkA-2  x  5 ns/op",
		"BenchmarkA-2  1  5.5.5 ns/op",
		"BenchmarkA-2 2026/01/01 12:00:00 something is logged",
	} {
		if got, err := readBenchmarks("PASS\n" + line + "\n"); err == nil || !strings.Contains(err.Error(), "BenchmarkA") {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
}

func TestBenchmarkMetrics(t *testing.T) {
	const out = "goos: linux\nBenchmarkSteady-2   \t       1\t44921586415 ns/op\t       903.0 busiest-of-first\t 238.1 renewals/min\nPASS\n"
	metrics, err := benchmarkMetrics(out, "Steady")
	if err != nil || metrics["busiest-of-first"] != 903 || metrics["renewals/min"] != 238.1 {
		t.Errorf("%v, %v", metrics, err)
	}
	if _, err := benchmarkMetrics(out, "Stead"); err == nil {
		t.Error("another benchmark was taken for the requested one")
	}
	if _, err := benchmarkMetrics("PASS\n", "Steady"); err == nil {
		t.Error("no result was taken for one")
	}
}

func TestMediansOfFigures(t *testing.T) {
	all := figures{}
	for _, v := range []float64{9, 1, 2} {
		all.add([]goBenchmark{{"A", 1, map[string]float64{"ns/op": v}}, {"A", 2, map[string]float64{"ns/op": 10 * v}}})
	}
	m := &medians{figures: all}
	if one, two := m.of("A", 1, "ns/op"), m.of("A", 2, "ns/op"); one != 2 || two != 20 || m.err != nil {
		t.Errorf("medians %v and %v, %v", one, two, m.err)
	}
	m.of("A", 4, "ns/op")
	m.of("A", 1, "B/op")
	if m.err == nil || !strings.Contains(m.err.Error(), "4 CPUs") {
		t.Errorf("error %v, want the first figure that there is not", m.err)
	}
}

// A round in which the machine was busy slows both down.
func TestFasterIsOfTheSameRound(t *testing.T) {
	all := figures{{"A", 1, "ns/op"}: {10, 1000, 30}, {"A", 4, "ns/op"}: {5, 250, 10}, {"B", 1, "ns/op"}: {1, 1}, {"B", 4, "ns/op"}: {1}}
	m := &medians{figures: all}
	if got := m.faster("A", 4); got != 3 || m.err != nil {
		t.Errorf("%v times as fast, %v, want 3", got, m.err)
	}
	if m.faster("B", 4); m.err == nil || !strings.Contains(m.err.Error(), "2 times with 1 CPU and 1 times with 4") {
		t.Errorf("a round without its other half: %v", m.err)
	}
}
