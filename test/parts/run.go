package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// runner runs parts from the top folder of the checkout.
type runner struct {
	top     string
	scratch *scratch
	out     io.Writer
	now     func() time.Time

	mu    sync.Mutex // of out and left
	left  int
	first map[string]chan struct{} // closed when the part of that name is done
}

// result is how a part ended.
type result struct {
	part
	tests
	err error // of the command
	log string
}

func (r result) failed() bool { return r.err != nil || len(r.failures) > 0 }

// all runs the parts, each lane beside the others, until they are done or ctx ends.
func (r *runner) all(ctx context.Context, list []part) []result {
	r.left = len(list)
	r.first = map[string]chan struct{}{}
	lanes := map[int][]int{}
	for i, p := range list {
		r.first[p.name] = make(chan struct{})
		lanes[p.lane] = append(lanes[p.lane], i)
	}
	results := make([]result, len(list))
	var running sync.WaitGroup
	for _, lane := range lanes {
		running.Go(func() {
			for _, i := range lane {
				results[i] = r.one(ctx, list[i])
			}
		})
	}
	running.Wait()
	return results
}

// one waits for the parts that come before, runs the part and prints its line.
func (r *runner) one(ctx context.Context, p part) result {
	defer close(r.first[p.name])
	for _, name := range p.after {
		if done, found := r.first[name]; found {
			<-done
		}
	}
	started := r.now()
	got := result{part: p, log: filepath.Join("bin", "log", strings.Map(fileName, p.name)+".txt")}
	if got.err = ctx.Err(); got.err == nil {
		got.err = r.command(ctx, &got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left--
	word := "ok"
	if got.failed() {
		word = "FAIL"
	}
	counts := ""
	if p.tests {
		counts = fmt.Sprintf("%d tests, ", got.passed+got.failedTests+got.skipped)
	}
	fmt.Fprintf(r.out, "%-5s %-44s %6s  %s%d parts left\n", word, p.name, r.now().Sub(started).Round(time.Second), counts, r.left)
	return got
}

// fileName keeps what is plain in a name of a file.
func fileName(c rune) rune {
	if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", c|' ') {
		return c
	}
	return '-'
}

// command runs the part's command in a process group of its own. Of a part that tests, its standard output are the events of go test.
func (r *runner) command(ctx context.Context, got *result) error {
	log, err := os.Create(filepath.Join(r.top, got.log))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", got.line())
	cmd.Dir = filepath.Join(r.top, got.dir)
	cmd.Env = append(append(os.Environ(), r.scratch.environment()...), got.env...)
	if got.kubernetes != "" {
		folder := filepath.Join(r.top, "bin", "kubernetes", got.kubernetes)
		cmd.Env = append(cmd.Env, "CREDENCE_BIN="+folder, "CREDENCE_KUBERNETES_PROGRAMS="+folder)
	}
	if got.race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1", "GORACE=atexit_sleep_ms=10")
	}
	group(cmd)
	cmd.WaitDelay = 30 * time.Second
	cmd.Stderr = log
	if !got.part.tests {
		cmd.Stdout = log
		return cmd.Run()
	}
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	got.tests.read(io.TeeReader(events, log))
	if err := cmd.Wait(); err != nil || !got.covers {
		return err
	}
	got.failures, err = uncovered(r.top, got.covered)
	return err
}

// quickly are flags of go test that save a third of the time of compilers and linkers: programs without tables for debuggers, and no collection
// of the memory of compilers and linkers (see hack/build.sh). With -exec in its place, "go test" would not start a program again that is written
// still ("text file busy").
const quickly = `-ldflags='-s -w' -toolexec='env GOGC=off GOMEMLIMIT=1GiB'`

// line is the command as bash runs it.
func (p part) line() string {
	if !p.tests {
		return p.command
	}
	flags := "test -json -vet=off -count=1 " + quickly
	if p.race {
		flags += " -race"
	}
	if p.covers {
		flags += " -cover"
	}
	if script, module, alone := strings.Cut(p.command, " "); alone && strings.HasPrefix(script, "hack/") {
		return script + " " + module + " " + flags + " ./..."
	}
	prefix := ""
	if p.cgo {
		prefix = `CGO_ENABLED=$(command -v "${CC:-gcc}" >/dev/null && echo 1 || echo 0) `
	}
	return prefix + "go " + flags + " " + p.command
}
