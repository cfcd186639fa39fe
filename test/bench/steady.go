package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// measureSteady runs the requestor with a clock that is faster than any, and an API in memory: see BenchmarkSteady there.
func measureSteady(ctx context.Context, _ settings, _ plane, t *table) error {
	fmt.Fprintln(os.Stderr, "bench: 10000 Secrets over four lifetimes")
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkSteady$", "-benchtime", "1x", "github.com/credence-id/credence/internal/delivery")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run BenchmarkSteady: %w\n%s", err, out)
	}
	metrics, err := benchmarkMetrics(string(out), "BenchmarkSteady")
	if err != nil {
		return err
	}
	const what, average = "10000 Secrets, renewed over 4 lifetimes: ", "average minute"
	t.add(row{what: what + "busiest minute of the first two", ours: metrics["busiest-of-first"], peer: average, theirs: metrics["renewals/min"], target: atMost(4)})
	t.add(row{what: what + "busiest minute from the third", ours: metrics["busiest-of-later"], peer: average, theirs: metrics["renewals/min"], target: atMost(3)})
	t.add(row{what: what + "tokens asked for", ours: metrics["renewed"], peer: "times that one was due", theirs: metrics["due"], target: atMost(1)})
	return nil
}

// benchmarkMetrics reads the line of a benchmark, which has pairs of numbers and units after its name and count.
func benchmarkMetrics(out, name string) (map[string]float64, error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], name) {
			continue
		}
		metrics := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q of %s: %w", fields[i], name, err)
			}
			metrics[fields[i+1]] = value
		}
		return metrics, nil
	}
	return nil, fmt.Errorf("%s printed no result:\n%s", name, out)
}
