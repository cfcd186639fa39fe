//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The pause before a process is started again doubles from the first to the last, and is short again after a process has
// run for a while.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	longRun    = time.Minute
)

// Settings are the needs of a Supervisor; all are required.
type Settings struct {
	Launcher *Launcher
	// Grace is how long a process may take to end after SIGTERM.
	Grace time.Duration
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Notify is called for everything that happens, one event at a time. It must not call the Supervisor.
	Notify func(Event)
}

// Happening is the kind of an Event.
type Happening int

// The events of a process.
const (
	// Started: it runs now, for the first time.
	Started Happening = iota
	// Restarted: it runs again.
	Restarted
	// Failed: it ended before Settle was called, and is not started again.
	Failed
	// Died: it ended unasked and will be started again after Event.Pause.
	Died
	// Stopped: it ended on request.
	Stopped
)

// Event is something that happened to one process.
type Event struct {
	What Happening
	Name string
	PID  int
	// Exit is set for Failed, Died and Stopped.
	Exit  Exit
	Pause time.Duration
}

// Supervisor keeps processes running. Until Settle is called a process that ends is a failure of the start; after it,
// the process is started again.
type Supervisor struct {
	settings Settings
	stopping chan struct{}
	settled  chan struct{}

	mu       sync.Mutex
	services []*service
	notify   sync.Mutex
}

type service struct {
	spec    Spec
	current *Process
	ended   chan struct{}
}

// New returns a Supervisor that runs nothing yet.
func New(settings Settings) *Supervisor {
	return &Supervisor{settings: settings, stopping: make(chan struct{}), settled: make(chan struct{})}
}

var errStopping = errors.New("everything is being stopped")

// Start runs spec from now on.
func (s *Supervisor) Start(spec Spec) error {
	v := &service{spec: spec, ended: make(chan struct{})}
	p, err := s.launch(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.services = append(s.services, v)
	s.mu.Unlock()
	s.tell(Event{What: Started, Name: spec.Name, PID: p.PID()})
	go s.keep(v, p)
	return nil
}

// Settle ends the start: from now on what ends is started again.
func (s *Supervisor) Settle() { close(s.settled) }

// Stop ends every process, the last started first. When ctx is done those left are killed at once.
func (s *Supervisor) Stop(ctx context.Context) {
	s.mu.Lock()
	close(s.stopping)
	services := s.services
	s.mu.Unlock()
	for i := len(services) - 1; i >= 0; i-- {
		v := services[i]
		s.mu.Lock()
		p := v.current
		s.mu.Unlock()
		p.Stop(ctx, s.settings.Grace)
		<-v.ended
		s.tell(Event{What: Stopped, Name: v.spec.Name, PID: p.PID(), Exit: p.Exit()})
	}
}

// launch holds the lock while it starts, so that nothing is started once Stop has looked.
func (s *Supervisor) launch(v *service) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isClosed(s.stopping) {
		return nil, errStopping
	}
	p, err := s.settings.Launcher.Start(v.spec)
	if err != nil {
		return nil, err
	}
	v.current = p
	return p, nil
}

func (s *Supervisor) keep(v *service, p *Process) {
	defer close(v.ended)
	pause := firstPause
	for {
		started := s.settings.Now()
		<-p.Done()
		if isClosed(s.stopping) {
			return
		}
		if !isClosed(s.settled) {
			s.tell(Event{What: Failed, Name: v.spec.Name, PID: p.PID(), Exit: p.Exit()})
			return
		}
		if s.settings.Now().Sub(started) >= longRun {
			pause = firstPause
		}
		if p = s.restart(v, p.Exit(), &pause); p == nil {
			return
		}
		s.tell(Event{What: Restarted, Name: v.spec.Name, PID: p.PID()})
	}
}

// restart returns nil if everything is being stopped.
func (s *Supervisor) restart(v *service, exit Exit, pause *time.Duration) *Process {
	for {
		s.tell(Event{What: Died, Name: v.spec.Name, PID: exit.PID, Exit: exit, Pause: *pause})
		select {
		case <-s.settings.After(*pause):
		case <-s.stopping:
			return nil
		}
		*pause = min(2**pause, lastPause)
		p, err := s.launch(v)
		switch {
		case err == nil:
			return p
		case errors.Is(err, errStopping):
			return nil
		}
		exit = Exit{Name: v.spec.Name, PID: exit.PID, LogFile: v.spec.LogFile, Status: "not started", Cause: err.Error()}
	}
}

func (s *Supervisor) tell(event Event) {
	s.notify.Lock()
	defer s.notify.Unlock()
	s.settings.Notify(event)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// String is one line: the component, how it ended and why, and where to read more.
func (e Exit) String() string {
	if e.Cause == "" {
		return fmt.Sprintf("%s ended (%s), log file %s", e.Name, e.Status, e.LogFile)
	}
	return fmt.Sprintf("%s ended (%s): %s, log file %s", e.Name, e.Status, e.Cause, e.LogFile)
}
