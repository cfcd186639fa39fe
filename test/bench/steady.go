package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// measureSteady runs what renews tokens with a clock that is faster than any, and an API in memory: see the benchmarks.
func measureSteady(ctx context.Context, _ settings, _ plane, t *table) error {
	fmt.Fprintln(os.Stderr, "bench: 10000 Secrets over four lifetimes")
	secrets, err := simulated(ctx, "Steady", "github.com/credence-id/credence/internal/delivery/secrets")
	if err != nil {
		return err
	}
	const what, average = "10000 Secrets, renewed over 4 lifetimes: ", "average minute"
	t.add(row{what: what + "busiest minute of the first two", ours: secrets["busiest-of-first"], peer: average, theirs: secrets["renewals/min"], target: atMost(4)})
	t.add(row{what: what + "busiest minute from the third", ours: secrets["busiest-of-later"], peer: average, theirs: secrets["renewals/min"], target: atMost(3)})
	t.add(row{what: what + "tokens asked for", ours: secrets["renewed"], peer: "times that one was due", theirs: secrets["due"], target: atMost(1)})
	fmt.Fprintln(os.Stderr, "bench: 10000 volumes over four lifetimes")
	volumes, err := simulated(ctx, "VolumesSteady", "github.com/credence-id/credence/internal/app/node")
	if err != nil {
		return err
	}
	const writes = "10000 pods over 4 lifetimes: writes to the API, tokens in "
	t.add(row{what: writes + "Secrets", ours: secrets["writes"], peer: "tokens", theirs: secrets["tokens"], target: atMost(1)})
	t.add(row{what: writes + "volumes", ours: volumes["writes"], peer: "tokens", theirs: volumes["tokens"], target: atMost(0)})
	return nil
}

// simulated runs one benchmark of our own once.
func simulated(ctx context.Context, name, of string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark"+name+"$", "-benchtime", "1x", of)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run Benchmark%s: %w\n%s", name, err, out)
	}
	return benchmarkMetrics(string(out), name)
}
