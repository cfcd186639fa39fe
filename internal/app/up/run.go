//go:build unix

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/app/up/progress"
)

const (
	stopGrace = 20 * time.Second
	// leftoverGrace is short: what a crash left is not in use any more.
	leftoverGrace = 10 * time.Second
	// spaceToGoOn is what a start needs on a disk that already holds the state, in bytes.
	spaceToGoOn = 64 << 20
	// spaceToWrite is what a disk has that is not full, in bytes.
	spaceToWrite = 1 << 20
	cutEvery     = time.Minute
)

// run is one up from its start to its end.
type run struct {
	installation
	programs map[string]string
	tracker  *progress.Tracker
	now      func() time.Time
	storage  string // that was chosen; empty: as before
	// watches returns an error if there is too little to watch files with.
	watches func() error
	// settled is called when everything is ready.
	settled func(run *run) error

	supervisor *process.Supervisor
	fail       context.CancelCauseFunc
	startup    *starter
	// recovering are the goroutines that watch restarted components become ready.
	recovering sync.WaitGroup

	mu        sync.Mutex
	endpoints home.Endpoints
}

// hold runs everything until first is done, and ends it; done second, what is left is killed. The error is nil if all was
// ready and then stopped on request.
func (r *run) hold(first, second context.Context, port int) (err error) {
	lock, err := r.dir.Acquire()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := r.prepare(first, port); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(first)
	defer fail(nil)
	r.fail = fail
	r.supervisor = process.New(process.Settings{
		Launcher: process.NewLauncher(), Grace: stopGrace, Now: r.now, After: time.After, Notify: func(e process.Event) { r.notice(ctx, e) },
	})
	err = r.operate(ctx)
	fail(nil)
	r.recovering.Wait()
	if err != nil {
		r.tracker.Note("stopping what was started")
	} else {
		r.tracker.Note("stopping (once more to stop at once)")
	}
	quiet := context.AfterFunc(second, func() { r.tracker.Note("interrupted twice: killing what is left") })
	r.supervisor.Stop(second)
	quiet()
	r.forgetSupervisor()
	return err
}

// prepare makes sure that nothing stands in the way, before anything is started.
func (r *run) prepare(ctx context.Context, port int) error {
	config, err := r.dir.Configure(port, r.storage)
	if err != nil {
		return err
	}
	r.config = config
	needed := uint64(home.NeededSpace)
	if r.dir.Exists() {
		needed = spaceToGoOn
	}
	if err := r.dir.CheckSpace(needed); err != nil {
		return err
	}
	if err := r.endLeftovers(ctx); err != nil {
		return err
	}
	if err := r.watches(); err != nil {
		r.tracker.Note("%v", err)
	}
	for _, c := range components {
		for _, p := range c.ports {
			if err := process.CheckPort(r.config.Port+p.offset, p.purpose); err != nil {
				return err
			}
		}
	}
	for _, c := range components {
		if err := process.Rotate(r.dir.Log(c.name)); err != nil {
			return err
		}
	}
	r.endpoints = home.NewEndpoints(r.dir, r.config)
	r.endpoints.Node, r.endpoints.Guard = r.nodeName(), r.guard != ""
	r.endpoints.Supervisor = &home.Component{Name: "up", PID: os.Getpid(), LogFile: r.dir.Log("up")}
	return r.dir.SaveConfig(r.config)
}

// endLeftovers ends what a supervisor that was killed could not; on Linux the kernel has done so already.
func (r *run) endLeftovers(ctx context.Context) error {
	left, err := process.Leftovers(string(r.dir), programNames())
	if err != nil {
		return err
	}
	for _, each := range left {
		r.tracker.Note("ending %s, left by an earlier start", each)
	}
	return process.End(ctx, left, leftoverGrace)
}

// operate starts everything, and returns when ctx is done.
func (r *run) operate(ctx context.Context) error {
	r.startup = &starter{run: r}
	if err := r.startup.start(ctx); err != nil {
		return err
	}
	r.supervisor.Settle()
	// A process that ended between being ready and now was reported as a failure.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.settled(r); err != nil {
		return err
	}
	ticker := time.NewTicker(cutEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.cutLogs()
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
				return cause
			}
			return nil
		}
	}
}

func (r *run) cutLogs() {
	logs := []string{r.dir.Log("up")}
	for _, c := range components {
		logs = append(logs, r.dir.Log(c.name))
	}
	for _, log := range logs {
		if err := process.Cut(log, process.MaxLog); err != nil {
			r.tracker.Note("%v", err)
		}
	}
}

// notice reports what happened to a process, once endpoints.json has it: a reader of the report finds the process there.
func (r *run) notice(ctx context.Context, event process.Event) {
	r.record(event)
	switch event.What {
	case process.Failed:
		r.fail(errors.New(r.describe(event.Exit)))
	case process.Died:
		r.tracker.Note("%s; it is started again in %s", r.describe(event.Exit), event.Pause)
	case process.Restarted:
		r.tracker.Note("%s runs again (pid %d)", event.Name, event.PID)
		r.recovering.Go(func() { r.startup.recover(ctx, event.Name) })
	case process.Stopped:
		r.tracker.Note("%s has stopped", event.Name)
	}
}

// describe is one line about a component that ended. On a full disk its log has no room for the cause.
func (r *run) describe(exit process.Exit) string {
	if r.dir.CheckSpace(spaceToWrite) != nil {
		exit.Cause = fmt.Sprintf("no space left on device: make room in %s", r.dir)
	}
	return exit.String()
}

func (r *run) record(event process.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints.Components = slices.DeleteFunc(r.endpoints.Components, func(c home.Component) bool { return c.Name == event.Name })
	if event.What == process.Started || event.What == process.Restarted {
		r.endpoints.Components = append(r.endpoints.Components, home.Component{Name: event.Name, PID: event.PID, LogFile: r.dir.Log(event.Name)})
	}
	if err := r.dir.SaveEndpoints(r.endpoints); err != nil {
		r.tracker.Note("%v", err)
	}
}

func (r *run) forgetSupervisor() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints.Supervisor, r.endpoints.Node, r.endpoints.Guard = nil, "", false
	if err := r.dir.SaveEndpoints(r.endpoints); err != nil {
		r.tracker.Note("%v", err)
	}
}

// locate finds the program of every component.
func locate(executable string) (map[string]string, error) {
	found := map[string]string{}
	for _, program := range programNames() {
		path, err := process.Locate(program, executable)
		if err != nil {
			return nil, err
		}
		found[program] = path
	}
	return found, nil
}

func programNames() []string {
	var names []string
	for _, c := range components {
		if !slices.Contains(names, c.program) {
			names = append(names, c.program)
		}
	}
	return names
}
