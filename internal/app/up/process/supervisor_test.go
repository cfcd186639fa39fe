//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

// self is the test binary in one of the roles of TestMain.
func self(role string, arguments ...string) *exec.Cmd {
	command := exec.Command(executable(), arguments...)
	command.Env = append(os.Environ(), roleVariable+"="+role)
	command.Stderr = os.Stderr
	return command
}

// stage is a Supervisor with a clock that the test turns. The role of what it runs is read at each start.
type stage struct {
	*Supervisor
	t      *testing.T
	folder string
	events chan Event
	pauses chan time.Duration
	wake   chan time.Time
	now    chan time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		t: t, folder: t.TempDir(), events: make(chan Event, 100), pauses: make(chan time.Duration, 100),
		wake: make(chan time.Time), now: make(chan time.Time, 100),
	}
	s.Supervisor = New(Settings{
		Launcher: NewLauncher(), Grace: 5 * time.Minute,
		Now: func() time.Time {
			select {
			case now := <-s.now:
				return now
			default:
				return time.Unix(0, 0)
			}
		},
		After:  func(d time.Duration) <-chan time.Time { s.pauses <- d; return s.wake },
		Notify: func(e Event) { s.events <- e },
	})
	return s
}

// run starts a program that sees its role through a wrapper, as a Spec has no environment.
func (s *stage) run(name, role string, arguments ...string) {
	s.t.Helper()
	script := filepath.Join(s.folder, name+".sh")
	text := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", roleVariable, role, executable())
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Start(Spec{Name: name, Path: script, Args: arguments, Folder: s.folder, LogFile: s.log(name)}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) log(name string) string { return filepath.Join(s.folder, name+".log") }

func (s *stage) next() Event {
	s.t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(5 * time.Minute):
		s.t.Fatal("waited too long for an event")
		return Event{}
	}
}

func (s *stage) expect(what Happening, name string) Event {
	s.t.Helper()
	e := s.next()
	if e.What != what || e.Name != name {
		s.t.Fatalf("event is %+v, want %d of %s", e, what, name)
	}
	return e
}

// waiting waits until a program handles signals.
func (s *stage) waiting(name string) {
	s.t.Helper()
	testkit.Eventually(s.t, name+" waits", func() bool {
		content, _ := os.ReadFile(s.log(name))
		return strings.Contains(string(content), "waiting")
	})
}

func TestStopEndsTheLastStartedFirst(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"one", "two", "three"} {
		s.run(name, "sleeper")
		s.expect(Started, name)
		s.waiting(name)
	}
	s.Settle()
	s.Stop(t.Context())
	for _, name := range []string{"three", "two", "one"} {
		if e := s.expect(Stopped, name); e.Exit.Status != "exit status 0" || Alive(e.PID) {
			t.Errorf("%s ended with %+v, alive %v", name, e.Exit, Alive(e.PID))
		}
	}
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	for name, stopping := range map[string]func(*stage) context.Context{
		"after its grace": func(s *stage) context.Context { s.settings.Grace = time.Millisecond; return t.Context() },
		"at once when asked twice": func(*stage) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.run("mule", "stubborn")
			s.expect(Started, "mule")
			s.waiting("mule")
			s.Stop(stopping(s))
			if e := s.expect(Stopped, "mule"); e.Exit.Status != "signal: killed" || Alive(e.PID) {
				t.Errorf("mule ended with %+v, alive %v", e.Exit, Alive(e.PID))
			}
		})
	}
}

func TestWhatEndsBeforeSettleIsAFailure(t *testing.T) {
	s := newStage(t)
	s.run("cup", "failing")
	s.expect(Started, "cup")
	e := s.expect(Failed, "cup")
	want := Exit{Name: "cup", PID: e.PID, LogFile: s.log("cup"), Status: "exit status 3", Cause: "the cup is broken"}
	if diff := cmp.Diff(want, e.Exit); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	if got, want := e.Exit.String(), "cup ended (exit status 3): the cup is broken, log file "+s.log("cup"); got != want {
		t.Errorf("the failure reads %q, want %q", got, want)
	}
	s.Stop(t.Context())
	s.expect(Stopped, "cup")
}

func TestWhatEndsLaterIsStartedAgainAfterGrowingPauses(t *testing.T) {
	s := newStage(t)
	s.Settle()
	s.run("cup", "failing")
	s.expect(Started, "cup")
	var pauses []time.Duration
	for range 7 {
		e := s.expect(Died, "cup")
		if e.Exit.Cause != "the cup is broken" {
			t.Errorf("cause is %q", e.Exit.Cause)
		}
		if asked := <-s.pauses; asked != e.Pause {
			t.Errorf("notified of a pause of %s, paused for %s", e.Pause, asked)
		}
		pauses = append(pauses, e.Pause)
		s.wake <- time.Time{}
		s.expect(Restarted, "cup")
	}
	want := []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	s.expect(Died, "cup")
	s.Stop(t.Context())
	s.expect(Stopped, "cup")
}

func TestALongRunMakesThePauseShortAgain(t *testing.T) {
	s := newStage(t)
	s.Settle()
	// The times of a start and an end, for each run.
	for _, seconds := range []int64{0, 1, 2, 3, 10, 70} {
		s.now <- time.Unix(seconds, 0)
	}
	s.run("cup", "failing")
	s.expect(Started, "cup")
	var pauses []time.Duration
	for range 3 {
		pauses = append(pauses, s.expect(Died, "cup").Pause)
		<-s.pauses
		s.wake <- time.Time{}
		s.expect(Restarted, "cup")
	}
	if diff := cmp.Diff([]time.Duration{1e9, 2e9, 1e9}, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	s.expect(Died, "cup")
	s.Stop(t.Context())
	s.expect(Stopped, "cup")
}

func TestAProgramThatIsGoneIsTriedAgain(t *testing.T) {
	s := newStage(t)
	s.Settle()
	s.run("cup", "failing")
	s.expect(Started, "cup")
	s.expect(Died, "cup")
	<-s.pauses
	testkit.Must(t, os.Remove(filepath.Join(s.folder, "cup.sh")))
	s.wake <- time.Time{}
	if e := s.expect(Died, "cup"); e.Exit.Status != "not started" || !strings.Contains(e.Exit.Cause, "no such file") {
		t.Errorf("exit is %+v", e.Exit)
	}
	s.Stop(t.Context())
	s.expect(Stopped, "cup")
}

func pidIn(t *testing.T, folder string) int {
	t.Helper()
	var pid int
	testkit.Eventually(t, "a process id is written", func() bool {
		content, err := os.ReadFile(filepath.Join(folder, "pid"))
		if err == nil {
			pid, err = strconv.Atoi(string(content))
		}
		return err == nil
	})
	return pid
}

func TestTheGroupEndsWithItsLeader(t *testing.T) {
	s := newStage(t)
	s.Settle()
	s.run("parent", "parent", s.folder)
	started := s.expect(Started, "parent")
	s.waiting("parent")
	grandchild := pidIn(t, s.folder)
	testkit.Must(t, syscall.Kill(started.PID, syscall.SIGKILL))
	s.expect(Died, "parent")
	// It has been killed; a slow system may take its time.
	testkit.Eventually(t, "no process of the group outlives its leader, and holds its ports", func() bool { return !Alive(grandchild) })
	s.Stop(t.Context())
	s.expect(Stopped, "parent")
}

func TestChildrenDieWithAKilledParent(t *testing.T) {
	if !ChildrenDieWithParent {
		t.Skip("this system cannot end children with their parent")
	}
	folder := t.TempDir()
	command := self("supervisor", folder)
	stdin := testkit.Need(command.StdinPipe())(t)
	defer func() { _ = stdin.Close() }()
	testkit.Must(t, command.Start())
	child := pidIn(t, folder)
	if !Alive(child) {
		t.Fatal("the child does not run")
	}
	testkit.Must(t, command.Process.Kill())
	_ = command.Wait()
	testkit.Eventually(t, "the child ends with its parent", func() bool { return !Alive(child) })
}
