package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// measureSteady runs the requestor with a clock that is faster than any, and an API in memory: see BenchmarkSteady there.
func measureSteady(ctx context.Context, _ settings, _ plane, t *table) error {
	fmt.Fprintln(os.Stderr, "bench: 10000 Secrets over four lifetimes")
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkSteady$", "-benchtime", "1x", "github.com/credence-id/credence/internal/delivery")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run BenchmarkSteady: %w\n%s", err, out)
	}
	metrics, err := benchmarkMetrics(string(out), "Steady")
	if err != nil {
		return err
	}
	const what, average = "10000 Secrets, renewed over 4 lifetimes: ", "average minute"
	t.add(row{what: what + "busiest minute of the first two", ours: metrics["busiest-of-first"], peer: average, theirs: metrics["renewals/min"], target: atMost(4)})
	t.add(row{what: what + "busiest minute from the third", ours: metrics["busiest-of-later"], peer: average, theirs: metrics["renewals/min"], target: atMost(3)})
	t.add(row{what: what + "tokens asked for", ours: metrics["renewed"], peer: "times that one was due", theirs: metrics["due"], target: atMost(1)})
	return nil
}
