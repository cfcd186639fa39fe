package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// openTerminal returns both ends of a new one: the person's, and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	open := func(path string) *os.File {
		file := need(os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0))(t)
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	person = open("/dev/ptmx")
	number := need(unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN))(t)
	must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	return person, open(fmt.Sprintf("/dev/pts/%d", number))
}

// A program that must prompt a person does not run without a terminal. The informer reports that, the program is not started, and both go on
// when there is a terminal.
func TestExecCredentialInformerWithAPrompt(t *testing.T) {
	inTurn(t)
	w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
	clock := exectest.NewClock(time.Now())
	var runs atomic.Int32
	nobody := need(os.Open(os.DevNull))(t)
	t.Cleanup(func() { _ = nobody.Close() })
	pool := execPool(t, execcredential.Options{Clock: clock, Stdin: nobody, OnRun: func(execcredential.Run) { runs.Add(1) }})
	program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return w.answerToken("", clock.Now().Add(time.Hour)) })
	asking := program.Config()
	asking.InteractiveMode = execcredential.Always
	asking.Env = append(asking.Env, execcredential.EnvVar{Name: "EXECTEST_STDIN", Value: "unread"})
	f := w.follow(w.config(pool, asking))
	w.add("unseen")
	f.awaitError("the missing terminal", func(err error) bool { // by the pause: the first try was a kind of watch that informers give up silently
		prompt, ok := errors.AsType[*execcredential.InteractiveError](err)
		return ok && isBackoff(err) && prompt.Reason == "standard input is not a terminal"
	})
	if program.Runs() != 0 || runs.Load() != 1 || f.sync() {
		t.Errorf("the program ran %d times, %d were tried, the informer synced: %v", program.Runs(), runs.Load(), f.sync())
	}
	if requests := w.requests(); len(requests) > 0 {
		t.Errorf("%d requests were made without a credential", len(requests))
	}

	_, tty := openTerminal(t)
	if err := unix.Dup3(int(tty.Fd()), int(nobody.Fd()), unix.O_CLOEXEC); err != nil { // standard input is a terminal from now on
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	f.has("unseen")
	f.saw(1)
	ran(t, program, 1)
	if refused := w.onlyAs(w.robot()); refused != 0 || runs.Load() != 2 {
		t.Errorf("%d requests were answered with 401, %d runs were tried", refused, runs.Load())
	}
}
