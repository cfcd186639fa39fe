package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startCommand is the first argument with which this program starts others once instead, as a client does. A provider that the
// same client runs again takes the credential that it served for refused, so each round has a client of its own.
const startCommand = "start-once"

// keptToken is what the authorization server of the benchmark gives.
const keptToken = "kept"

// askedFor is what client-go passes to a program that it runs.
const askedFor = `KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`

// startUnderParent starts programs from a process of its own, one after the other, and returns how long each took.
func startUnderParent(ctx context.Context, order []provider) ([]time.Duration, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{startCommand}
	for _, p := range order {
		text, err := json.Marshal(p.command)
		if err != nil {
			return nil, err
		}
		args = append(args, string(text))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr, cmd.WaitDelay = os.Stderr, leave
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start the programs: %w", err)
	}
	var took []time.Duration
	if err := json.Unmarshal(out, &took); err != nil || len(took) != len(order) {
		return nil, fmt.Errorf("start the programs: %d were started, with the output %q: %w", len(order), out, err)
	}
	return took, nil
}

// startOnce starts the commands of its arguments, each a JSON array, and writes how many nanoseconds each took.
func startOnce(args []string, _ io.Reader, stdout io.Writer) error {
	// A Go program looks into what the system can do when it starts another one for the first time.
	if err := exec.Command(nothing).Run(); err != nil {
		return err
	}
	var all []time.Duration
	for _, arg := range args {
		var command []string
		if err := json.Unmarshal([]byte(arg), &command); err != nil || len(command) == 0 {
			return fmt.Errorf("%s needs commands, each a JSON array, not %q", startCommand, arg)
		}
		took, err := provider{filepath.Base(command[0]), command}.start(context.Background())
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	return json.NewEncoder(stdout).Encode(all)
}

// start runs the program to its end, and returns how long that took. One that does anything must have served what is kept.
func (p provider) start(ctx context.Context) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Env = append(os.Environ(), askedFor)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errOut, leave
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return 0, fmt.Errorf("run %s: %w\n%s", p.name, err, errOut.Bytes())
	}
	if p.name == nothing {
		return took, nil
	}
	var credential struct{ Status struct{ Token string } }
	if err := json.Unmarshal(out.Bytes(), &credential); err != nil || credential.Status.Token != keptToken {
		return 0, fmt.Errorf("%s wrote something else than the token that is kept (%d bytes)", p.name, out.Len())
	}
	return took, nil
}
