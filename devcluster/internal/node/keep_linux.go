package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	processes "github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/state"
)

const (
	processesName = "processes.json"

	// The pause before a part is started again doubles from the first to the last, and is short again after a long run.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	longRun    = time.Minute
)

// program runs until ctx ends (nil), or ends by itself (an error).
type program func(ctx context.Context, output io.Writer, started func(pid int)) error

// child is a program that is this binary.
func child(args []string) program {
	return func(ctx context.Context, output io.Writer, started func(int)) error {
		return processes.Run(ctx, processes.Spec{Args: args, Output: output, Apart: true, Started: started})
	}
}

// running is the parts that run, as the file shows them to others.
type running struct {
	file string
	log  *slog.Logger

	mu        sync.Mutex
	processes []Process
	settled   bool
}

// keep runs a part until stop is called, which returns when it has ended. Until everything is ready, a part that ends is a
// failure of the start; after it, the part is started again.
func (r *running) keep(ctx context.Context, fail context.CancelCauseFunc, name string, run program) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause := firstPause
		for ctx.Err() == nil {
			began := time.Now()
			output := &logFilter{stopping: ctx.Done()}
			err := run(ctx, output, func(pid int) { r.record(name, pid) })
			r.record(name, 0)
			if ctx.Err() != nil {
				return
			}
			err = fmt.Errorf("%s ended: %w%s", name, err, output.lastLine())
			if !r.isSettled() {
				fail(err)
				return
			}
			if time.Since(began) >= longRun {
				pause = firstPause
			}
			r.log.Warn("a part of the node is started again", "reason", err, "in", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, lastPause)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *running) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
}

func (r *running) isSettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled
}

// record notes that a part runs, or with pid 0 that it does not.
func (r *running) record(name string, pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes = slices.DeleteFunc(r.processes, func(p Process) bool { return p.Name == name })
	if pid != 0 {
		r.processes = append(r.processes, Process{Name: name, PID: pid})
	}
	content, err := json.Marshal(State{Node: Name, Processes: r.processes})
	if err == nil {
		err = state.WriteFile(r.file, content, 0o600)
	}
	if err != nil {
		r.log.Warn("others cannot see which processes run", "error", err)
	}
}
