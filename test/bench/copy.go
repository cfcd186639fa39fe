package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// copied is a second discovery server, started as the bare one is: how the kernel shares out CPUs depends on the session that a
// process is in, and that of the plane has other processes.
type copied struct {
	url  string
	pid  int
	stop func()
}

// copyDiscovery starts the plane's discovery server once more, with the same arguments but ports and folders of its own, and
// waits until it serves the key set.
func copyDiscovery(ctx context.Context, p plane, pid int, client *http.Client) (copied, error) {
	program, args, err := commandOf(pid)
	if err != nil {
		return copied{}, err
	}
	port, err := freePort()
	if err != nil {
		return copied{}, err
	}
	cache, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return copied{}, err
	}
	for name, value := range map[string]string{"--port": port, "--health-port": "0", "--documents-cache": cache} {
		if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
			args[i+1] = value
		}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return copied{}, err
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(cache)
	}
	keySet, err := url.Parse(p.JWKS)
	if err != nil {
		stop()
		return copied{}, err
	}
	keySet.Host = net.JoinHostPort(keySet.Hostname(), port)
	if err := served(ctx, client, keySet.String()); err != nil {
		stop()
		return copied{}, fmt.Errorf("wait for a second %s: %w", path.Base(program), err)
	}
	return copied{url: keySet.String(), pid: cmd.Process.Pid, stop: stop}, nil
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

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// served waits until a document is served.
func served(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
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
