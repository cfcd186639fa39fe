package main

import "testing"

func TestBenchmarkMetrics(t *testing.T) {
	const out = "goos: linux\nBenchmarkSteady-2   \t       1\t44921586415 ns/op\t       903.0 busiest-of-first\t 238.1 renewals/min\nPASS\n"
	metrics, err := benchmarkMetrics(out, "BenchmarkSteady")
	if err != nil || metrics["busiest-of-first"] != 903 || metrics["renewals/min"] != 238.1 {
		t.Errorf("%v, %v", metrics, err)
	}
	if _, err := benchmarkMetrics("PASS\n", "BenchmarkSteady"); err == nil {
		t.Error("no result was taken for one")
	}
}
