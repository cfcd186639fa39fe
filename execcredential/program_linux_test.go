package execcredential_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
)

// A run that is ended takes with it what left its session, also if the process that started it is gone.
func TestChildInASessionOfItsOwnIsEnded(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid, of util-linux")
	}
	_, tty := terminal(t)
	for name, c := range map[string]struct {
		start string
		mode  execcredential.InteractiveMode
	}{
		"child":                 {`setsid sh "$0" child "$1" &`, execcredential.Never},
		"orphan":                {`setsid --fork sh "$0" child "$1"`, execcredential.Never},
		"child, at a terminal":  {`setsid sh "$0" child "$1" &`, execcredential.Always},
		"orphan, at a terminal": {`setsid --fork sh "$0" child "$1"`, execcredential.Always},
		"orphan of an orphan":   {`setsid --fork sh -c 'setsid --fork sh "$0" child "$1"' "$0" "$1"`, execcredential.Never},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			pipe, script := filepath.Join(folder, "pipe"), filepath.Join(folder, "login")
			must(t, errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(script, []byte("#!/bin/sh\n"+
				`if [ "$1" = child ]; then exec 3>"$2"; echo started >&3; exec sleep 1000; fi`+"\n"+c.start+"\nexec sleep 1000\n"), 0o700)))
			pool, clock := newPool(t, execcredential.Options{Stdin: tty, Timeout: time.Hour, InteractiveTimeout: time.Hour})
			source := sourceOf(t, pool, execcredential.Config{Command: script, Args: []string{pipe}, APIVersion: execcredential.V1, InteractiveMode: c.mode})
			failed := make(chan error, 1)
			go func() {
				_, err := source.Get(context.Background())
				failed <- err
			}()
			child, err := os.Open(pipe) // until a child opens it
			must(t, err)
			defer child.Close()
			said := bufio.NewReader(child)
			if line, err := said.ReadString('\n'); line != "started\n" {
				t.Fatalf("the child wrote %q, error %v", line, err)
			}
			clock.WaitForTimers(1)
			clock.Advance(time.Hour)
			var timeout *execcredential.TimeoutError
			if err := <-failed; !errors.As(err, &timeout) {
				t.Errorf("error %v", err)
			}
			_ = child.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := said.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the child goes on: %v", err)
			}
		})
	}
}
