package execcredential_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// terminal returns both ends of a new one: the person's, and the program's.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this system has no terminals to open: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number := need(unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN))(t)
	must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	program = need(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// With a terminal, what a person types reaches the program.
func TestTerminalReachesTheProgram(t *testing.T) {
	for _, mode := range []execcredential.InteractiveMode{execcredential.IfAvailable, execcredential.Always} {
		person, program := terminal(t)
		provider := exectest.NewProvider(t, token)
		pool, _ := newPool(t, execcredential.Options{Stdin: program})
		config := provider.Config()
		config.InteractiveMode = mode
		need(person.WriteString("jane\n\x04"))(t)
		need(sourceOf(t, pool, config).Get(t.Context()))(t)
		call := provider.Calls()[0]
		if call.Stdin != "jane\n" || !strings.Contains(call.Info, `"interactive":true`) {
			t.Errorf("%s: standard input %q, passed %s", mode, call.Stdin, call.Info)
		}
	}
}

// Without a terminal a program has none that it could wait at: it leads a session of its own.
func TestNoTerminal(t *testing.T) {
	script := "#!/bin/sh\nsession=$(cut -d' ' -f6 /proc/$$/stat)\necho \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"status\\\":{\\\"token\\\":\\\"$$.$session\\\"}}\"\n"
	path := filepath.Join(t.TempDir(), "plugin")
	must(t, os.WriteFile(path, []byte(script), 0o700))
	pool, _ := newPool(t, execcredential.Options{})
	got := need(sourceOf(t, pool, execcredential.Config{Command: path, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never}).Get(t.Context()))(t)
	if process, session, _ := strings.Cut(got.Token(), "."); process != session {
		t.Errorf("process %s is in session %s", process, session)
	}
}

// Two programs never ask a person at the same time, be they of one Pool or of two. At another terminal there is another person.
func TestOnePromptAtATime(t *testing.T) {
	_, tty := terminal(t)
	again, err := os.OpenFile(tty.Name(), os.O_RDWR|unix.O_NOCTTY, 0) // the same terminal
	must(t, err)
	defer again.Close()
	_, other := terminal(t)
	asking, answer := make(chan string, 3), make(chan bool)
	ask := func(pool *execcredential.Pool, name string) <-chan error {
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			asking <- name
			<-answer
			return exectest.Token(name, time.Time{})
		})
		config := provider.Config()
		config.InteractiveMode = execcredential.Always
		config.Env = append(config.Env, execcredential.EnvVar{Name: "EXECTEST_STDIN", Value: "unread"})
		source, done := sourceOf(t, pool, config), make(chan error, 1)
		go func() {
			_, err := source.Get(context.Background())
			done <- err
		}()
		return done
	}
	pool := func(stdin *os.File) *execcredential.Pool {
		pool, _ := newPool(t, execcredential.Options{Stdin: stdin})
		return pool
	}
	queued := func(want int) {
		wait(t, "runs that have or want a terminal", func() bool { _, runs := execcredential.Terminals(); return runs == want })
	}
	one, two, third := pool(tty), pool(again), pool(other)
	defer close(answer)
	first := ask(one, "first")
	<-asking
	mate, second := ask(one, "mate"), ask(two, "second")
	queued(3)
	select {
	case name := <-asking:
		t.Fatalf("%s prompts while the first does", name)
	case <-time.After(300 * time.Millisecond): // it would have been started at once
	}
	elsewhere := ask(third, "elsewhere")
	if name := <-asking; name != "elsewhere" {
		t.Fatalf("%s prompts while the first does", name)
	}
	// Close ends a run that waits for the terminal.
	closed := pool(tty)
	waiting := ask(closed, "closed")
	queued(5)
	_ = closed.Close()
	if err := <-waiting; !errors.Is(err, execcredential.ErrClosed) {
		t.Errorf("error %v", err)
	}
	for range 2 { // the first and the one elsewhere; then one of those that wait has the terminal
		answer <- true
	}
	expect(t, errors.Join(<-first, <-elsewhere))
	<-asking
	answer <- true
	<-asking
	answer <- true
	expect(t, errors.Join(<-mate, <-second))
	if left, _ := execcredential.Terminals(); left != 0 {
		t.Errorf("%d terminals are remembered without a user", left)
	}
}

// An interactive program is in our process group, and is ended with what it started all the same.
func TestInteractiveTimeoutEndsTheProcessTree(t *testing.T) {
	_, tty := terminal(t)
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return exectest.Answer{Hang: true, LeaveBehind: true} })
	pool, clock := newPool(t, execcredential.Options{Stdin: tty, InteractiveTimeout: time.Hour})
	config := provider.Config()
	config.InteractiveMode = execcredential.Always
	config.Env = append(config.Env, execcredential.EnvVar{Name: "EXECTEST_STDIN", Value: "unread"})
	source := sourceOf(t, pool, config)
	failed := make(chan error)
	go func() {
		_, err := source.Get(context.Background())
		failed <- err
	}()
	child := <-provider.LeftBehind()
	clock.WaitForTimers(1)
	clock.Advance(time.Hour)
	var timeout *execcredential.TimeoutError
	if err := <-failed; !errors.As(err, &timeout) {
		t.Errorf("error %v", err)
	}
	<-provider.Calls()[0].Ended
	<-child.Ended
}

// A program that is ended while it reads a password leaves the terminal as it was.
func TestTerminalIsRestored(t *testing.T) {
	_, tty := terminal(t)
	path := filepath.Join(t.TempDir(), "plugin")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nstty -echo\nexec sleep 1000\n"), 0o700))
	echoes := func() bool {
		state := need(unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS))(t)
		return state.Lflag&unix.ECHO != 0
	}
	if !echoes() {
		t.Fatal("a new terminal does not echo")
	}
	pool, clock := newPool(t, execcredential.Options{Stdin: tty, InteractiveTimeout: time.Hour})
	source := sourceOf(t, pool, execcredential.Config{Command: path, APIVersion: execcredential.V1, InteractiveMode: execcredential.Always})
	failed := make(chan error)
	go func() {
		_, err := source.Get(context.Background())
		failed <- err
	}()
	wait(t, "the program to read a password", func() bool { return !echoes() })
	clock.WaitForTimers(1)
	clock.Advance(time.Hour)
	var timeout *execcredential.TimeoutError
	if err := <-failed; !errors.As(err, &timeout) {
		t.Errorf("error %v", err)
	}
	if !echoes() {
		t.Error("the terminal does not echo anymore")
	}
}
