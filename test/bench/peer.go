package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// peer is this program once more, as something that ours is measured beside. It ends when its input does.
type peer struct {
	// ready is its first line of output, which it writes when it is ready.
	ready string
	pid   int
	stop  func()
}

// startPeer runs one in a process and a session of its own, and waits until it is ready.
func startPeer(ctx context.Context, args ...string) (peer, error) {
	program, err := os.Executable()
	if err != nil {
		return peer{}, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return peer{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return peer{}, err
	}
	if err := cmd.Start(); err != nil {
		return peer{}, err
	}
	stop := sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return peer{}, fmt.Errorf("start %s: %w", args[0], err)
	}
	return peer{ready: strings.TrimSpace(line), pid: cmd.Process.Pid, stop: stop}, nil
}
