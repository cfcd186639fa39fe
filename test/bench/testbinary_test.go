package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := compileTests(t.Context(), clientLibrary, t.TempDir())
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "the go command is needed") {
		t.Errorf("error %v", err)
	}
}

// script is a test binary that is a shell script, which writes the file "ran" with its arguments first.
func script(t *testing.T, text string) testBinary {
	t.Helper()
	b := testBinary{path: filepath.Join(t.TempDir(), "it.test"), dir: t.TempDir()}
	if err := os.WriteFile(b.path, []byte("#!/bin/sh\necho \"$@ in $TMPDIR\" >ran.new && mv ran.new ran\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRunBenchmarks(t *testing.T) {
	b := script(t, "echo 'BenchmarkA-2 30 5 ns/op'")
	list, err := b.run(t.Context(), "^BenchmarkA$", 30, []int{1, 2})
	if err != nil || len(list) != 1 || list[0].name != "A" {
		t.Errorf("%v, %v", list, err)
	}
	ran, err := os.ReadFile(filepath.Join(b.dir, "ran"))
	for _, want := range []string{"-test.bench=^BenchmarkA$ ", "-test.benchtime=30x ", "-test.cpu=1,2 ", "-test.run=^$ ", " in " + b.dir} {
		if !strings.Contains(string(ran), want) {
			t.Errorf("run with %q, want %q (%v)", ran, want, err)
		}
	}
	for text, want := range map[string]string{
		"echo PASS":                          "no benchmark is named",
		"echo broken; exit 1":                "broken",
		"echo 'BenchmarkA-2 30 5 ns/op 7'":   "pairs of number and unit",
		"echo 'BenchmarkA 1 5 B/op'; ./gone": "gone",
	} {
		if _, err := script(t, text).run(t.Context(), "^BenchmarkA$", 1, []int{1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestInterruptEndsTheBenchmarks(t *testing.T) {
	b := script(t, "exec tail -f ran")
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	go func() {
		_ = until(ctx, "it runs", time.Minute, time.Millisecond, func(context.Context) (bool, error) {
			_, err := os.Stat(filepath.Join(b.dir, "ran"))
			return err == nil, nil
		})
		interrupt(interrupted)
	}()
	if _, err := b.run(ctx, "^BenchmarkA$", 1, []int{1}); !errors.Is(err, interrupted) {
		t.Errorf("error %v, want %v", err, interrupted)
	}
}
