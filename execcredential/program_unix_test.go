//go:build unix

package execcredential_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestKilled(t *testing.T) {
	killed := exectest.NewProvider(t, func(call exectest.Call) exectest.Answer {
		_ = syscall.Kill(call.PID, syscall.SIGKILL)
		return exectest.Answer{Hang: true}
	})
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, killed.Config()).Get(t.Context())
	var exit *execcredential.ExitError
	if !errors.As(err, &exit) || exit.Code != -1 || exit.Signal != "killed" {
		t.Fatalf("error %#v", err)
	}
}

// Every bad run is an error of its own type. Nothing of it is kept, the program is left alone for a moment, and the next good run works.
func TestBadRunsAreForgotten(t *testing.T) {
	self := need(os.Executable())(t)
	type bad struct {
		answer *exectest.Answer // of the program; nil for what file makes
		file   func(path string) error
		during func(call exectest.Call, clock *exectest.Clock) // what happens to the program
		is     func(error) bool
	}
	script := func(content string, mode os.FileMode) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), mode) }
	}
	cases := map[string]bad{
		"200 MB": {
			file: script("#!/bin/sh\nhead -c 200000000 /dev/zero\n", 0o700),
			is:   func(err error) bool { return errors.Is(err, execcredential.OutputTooLarge) },
		},
		"never ends": {
			answer: &exectest.Answer{Flood: true},
			is:     func(err error) bool { return errors.Is(err, execcredential.OutputTooLarge) },
		},
		"never exits": {
			answer: &exectest.Answer{Hang: true},
			during: func(_ exectest.Call, clock *exectest.Clock) { clock.WaitForTimers(1); clock.Advance(time.Minute) },
			is: func(err error) bool {
				var timeout *execcredential.TimeoutError
				return errors.As(err, &timeout) && timeout.After == time.Minute
			},
		},
		"never exits after good output": {
			answer: &exectest.Answer{Stdout: withStatus(`{"token":"kept"}`), Hang: true},
			during: func(_ exectest.Call, clock *exectest.Clock) { clock.WaitForTimers(1); clock.Advance(time.Minute) },
			is:     func(err error) bool { return errors.As(err, new(*execcredential.TimeoutError)) },
		},
		"killed": {
			answer: &exectest.Answer{Hang: true},
			during: func(call exectest.Call, _ *exectest.Clock) { _ = syscall.Kill(call.PID, syscall.SIGKILL) },
			is: func(err error) bool {
				var exit *execcredential.ExitError
				return errors.As(err, &exit) && exit.Signal == "killed"
			},
		},
		"good output, bad exit code": {
			answer: &exectest.Answer{Stdout: withStatus(`{"token":"kept"}`), ExitCode: 7},
			is: func(err error) bool {
				var exit *execcredential.ExitError
				return errors.As(err, &exit) && exit.Code == 7
			},
		},
		"not executable": {
			file: script("#!/bin/sh\n", 0o600),
			is:   func(err error) bool { return errors.As(err, new(*execcredential.StartError)) },
		},
		"missing": {
			file: func(string) error { return nil },
			is:   func(err error) bool { return errors.As(err, new(*execcredential.NotFoundError)) },
		},
	}
	for name, output := range malformed(t) {
		cases["output: "+name] = bad{answer: &exectest.Answer{Stdout: output.output}, is: func(err error) bool { return errors.Is(err, output.want) }}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var good atomic.Bool
			good.Store(c.answer == nil)
			pool, clock := newPool(t, execcredential.Options{})
			provider := exectest.NewProvider(t, func(call exectest.Call) exectest.Answer {
				if good.Load() {
					return exectest.Token("good", time.Time{})
				}
				if c.during != nil {
					go c.during(call, clock)
				}
				return *c.answer
			})
			config := provider.Config()
			config.Command = filepath.Join(t.TempDir(), "login")
			prepare := c.file
			if prepare == nil {
				prepare = func(path string) error { return os.Symlink(self, path) }
			}
			must(t, prepare(config.Command))
			source := sourceOf(t, pool, config)
			var backoff *execcredential.BackoffError
			if got, err := source.Get(t.Context()); !c.is(err) || errors.As(err, &backoff) {
				t.Fatalf("credential %v, error %v", got, err)
			}
			if got, err := source.Get(t.Context()); !c.is(err) || !errors.As(err, &backoff) {
				t.Errorf("a moment later: credential %v, error %v", got, err)
			}
			if status := source.Status(); status.Runs != 1 || status.Failures != 1 || !status.Expires.IsZero() || !c.is(status.Err) {
				t.Errorf("status %+v", status)
			}
			if c.file != nil {
				must(t, errors.Join(os.RemoveAll(config.Command), os.Symlink(self, config.Command)))
			}
			good.Store(true)
			clock.Advance(time.Minute)
			mustGet(t, source, "good")
			if status := source.Status(); status.Runs != 2 || status.Failures != 1 || status.Err != nil {
				t.Errorf("afterwards status %+v", status)
			}
		})
	}
}
