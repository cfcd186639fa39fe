package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// testBinary is the compiled tests of a package, whose benchmarks run without the go command.
type testBinary struct {
	path string
	// dir is where it runs, and keeps what is temporary.
	dir string
}

// leave is how long what a process has started may go on after it.
const leave = 5 * time.Second

// compileTests compiles the tests of a package of this module into a folder.
func compileTests(ctx context.Context, importPath, dir string) (testBinary, error) {
	b := testBinary{path: filepath.Join(dir, "benchmarks.test"), dir: dir}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.path, importPath)
	cmd.WaitDelay = leave
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return testBinary{}, fmt.Errorf("compile the benchmarks of %s: the go command is needed, put it into a folder of PATH: %w", importPath, err)
	}
	if err != nil {
		return testBinary{}, fmt.Errorf("compile the benchmarks of %s: %w\n%s", importPath, err, out)
	}
	return b, nil
}

// run runs the benchmarks whose name matches so many times, with each number of CPUs.
func (b testBinary) run(ctx context.Context, pattern string, count int, cpus []int) ([]goBenchmark, error) {
	var list []string
	for _, n := range cpus {
		list = append(list, strconv.Itoa(n))
	}
	cmd := exec.CommandContext(ctx, b.path, "-test.run=^$", "-test.bench="+pattern, fmt.Sprintf("-test.benchtime=%dx", count),
		"-test.cpu="+strings.Join(list, ","), "-test.benchmem", "-test.timeout=1m")
	cmd.Dir, cmd.WaitDelay = b.dir, leave
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks %s: %w\n%s", pattern, err, out)
	}
	found, err := readBenchmarks(string(out))
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks %s: %w", pattern, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no benchmark is named %s:\n%s", pattern, out)
	}
	return found, nil
}
