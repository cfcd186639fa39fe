package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// copied is a component of the plane that was started once more, in a session of its own as the bare server is: how the kernel
// shares out CPUs depends on the session that a process is in, and that of the plane has other processes.
type copied struct {
	pid  int
	stop func()
}

// startCopy starts a component once more, with the same arguments but those that are changed; what it has not yet is added.
func startCopy(ctx context.Context, p plane, component string, changed map[string]string) (copied, error) {
	pid, err := p.pid(component)
	if err != nil {
		return copied{}, err
	}
	program, args, err := commandOf(pid)
	if err != nil {
		return copied{}, err
	}
	return start(exec.CommandContext(ctx, program, replaced(args, changed)...))
}

// start starts a program that an interrupt ends.
func start(cmd *exec.Cmd) (copied, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return copied{}, err
	}
	return copied{pid: cmd.Process.Pid, stop: sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})}, nil
}

// replaced returns arguments, each name followed by its value, with other values.
func replaced(args []string, changed map[string]string) []string {
	args = slices.Clone(args)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
			args[i+1] = changed[name]
		} else {
			args = append(args, name, changed[name])
		}
	}
	return args
}

// copyDiscovery starts the plane's discovery server once more, with ports and folders of its own, and waits until it serves the
// key set, whose URL it returns.
func copyDiscovery(ctx context.Context, p plane, client *http.Client) (copied, string, error) {
	port, err := freePorts(1)
	if err != nil {
		return copied{}, "", err
	}
	cache, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return copied{}, "", err
	}
	ours, err := startCopy(ctx, p, "discovery", map[string]string{"--port": port, "--health-port": "0", "--documents-cache": cache})
	if err != nil {
		return copied{}, "", err
	}
	end := ours.stop
	ours.stop = func() {
		end()
		_ = os.RemoveAll(cache)
	}
	keySet, err := url.Parse(p.JWKS)
	if err != nil {
		ours.stop()
		return copied{}, "", err
	}
	keySet.Host = net.JoinHostPort(keySet.Hostname(), port)
	if err := served(ctx, client, keySet.String()); err != nil {
		ours.stop()
		return copied{}, "", fmt.Errorf("wait for a second discovery server: %w", err)
	}
	return ours, keySet.String(), nil
}

// commandOf returns the program of a process and its arguments.
func commandOf(pid int) (program string, args []string, err error) {
	if program, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
		return "", nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", nil, err
	}
	return program, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")[1:], nil
}

// freePorts returns the first of consecutive free ports.
func freePorts(n int) (string, error) {
	first, err := testkit.FreePorts(n)
	return strconv.Itoa(first), err
}

// served waits until a document is served.
func served(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := get(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
