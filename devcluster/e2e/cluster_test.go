//go:build linux

// Package e2e runs the built credence-devcluster (DEVCLUSTER_BIN) as a user
// does, and reads the result from the API. It looks into /proc for processes.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is for a busy machine; every wait is for a condition.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("DEVCLUSTER_BIN") == "" {
		fmt.Fprintln(os.Stderr, "DEVCLUSTER_BIN is not set: it must name the built credence-devcluster")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// cluster is one running credence-devcluster.
type cluster struct {
	dir    string
	cmd    *exec.Cmd
	log    string // the file of what it prints
	exited chan struct{}
	err    error // of the process, once exited is closed
}

// launch starts the program on a free port. It does not wait.
func launch(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	folder := t.TempDir()
	c := &cluster{dir: dir, log: filepath.Join(folder, "log"), exited: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.cmd = exec.Command(os.Getenv("DEVCLUSTER_BIN"), append([]string{"--dir", dir, "--port", "0"}, args...)...)
	c.cmd.Stderr = log
	// Files that a killed one leaves go with the test.
	c.cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.exited)
		c.err = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.exited
		if t.Failed() {
			t.Logf("log of %s:\n%s", dir, c.printed(t))
		}
	})
	return c
}

// up starts the program and waits until both components are.
func up(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	c := launch(t, dir, args...)
	c.untilUp(t)
	return c
}

// printed is what the program has printed.
func (c *cluster) printed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c *cluster) untilUp(t *testing.T) {
	t.Helper()
	eventually(t, "kube-controller-manager is healthy", func(context.Context) error {
		select {
		case <-c.exited:
			t.Fatalf("credence-devcluster ended: %v", c.err)
		default:
		}
		if !strings.Contains(c.printed(t), "kube-controller-manager is healthy") {
			return errors.New("not yet")
		}
		return nil
	})
}

func (c *cluster) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (c *cluster) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// exitCode waits for the program to end.
func (c *cluster) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(patience):
		t.Fatalf("credence-devcluster still runs after %s", patience)
	}
	return c.cmd.ProcessState.ExitCode()
}

// child is the process id of kube-controller-manager.
func (c *cluster) child(t *testing.T) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// proc(5): pid (comm) state ppid …; comm may hold spaces.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if fields[1] == strconv.Itoa(c.cmd.Process.Pid) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, pid)
		}
	}
	if len(children) != 1 {
		t.Fatalf("credence-devcluster has children %v, want one", children)
	}
	return children[0]
}

func untilGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d is gone", pid), func(context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
			return errors.New("it still runs")
		}
		return nil
	})
}

// zombie is a process that has ended and that its new parent has not yet taken
// note of, as happens in a container without an init.
func zombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.HasPrefix(string(raw[bytes.LastIndexByte(raw, ')')+1:]), " Z")
}

// eventually waits for check to return nil.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for: %s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
