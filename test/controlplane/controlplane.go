// Package controlplane starts control planes of their own for tests: a real kube-apiserver with its etcd, by the credence-devcluster of
// make build. In go a folder and arguments, out comes the administrator's configuration once the API server is ready. It chooses no
// port, and leaves the folder behind.
package controlplane

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
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long a control plane may take until it is ready.
const patience = 5 * time.Minute

// ControlPlane is one that runs.
type ControlPlane struct {
	Admin *rest.Config // of its administrator

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// Program returns the path of a program of make build: in the folder CREDENCE_BIN, and without it in bin two folders up, where that is
// for packages of tests.
func Program(name string) string {
	bin := os.Getenv("CREDENCE_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	path, err := filepath.Abs(filepath.Join(bin, name))
	if err != nil {
		panic(err)
	}
	return path
}

// Start runs credence-devcluster with the folder dir and more arguments, such as --port, and returns when the API server is ready. What
// fails to become ready is stopped; the error has the end of what it wrote.
func Start(ctx context.Context, dir string, arguments ...string) (*ControlPlane, error) {
	var log bytes.Buffer
	c := &ControlPlane{
		cmd:   exec.Command(Program("credence-devcluster"), append([]string{"--dir", dir}, arguments...)...),
		ended: make(chan struct{}),
	}
	c.cmd.Stderr = &log
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a control plane, which make build makes: %w", err)
	}
	go func() {
		_ = c.cmd.Wait() // that it has ended is what counts
		close(c.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.ready(ctx, filepath.Join(dir, "admin.kubeconfig"))
		if err == nil {
			return c, nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return nil, fmt.Errorf("the control plane ended\n%s", log.String())
		case <-ctx.Done():
			c.Stop()
			return nil, fmt.Errorf("the control plane is not ready: %w\n%s", err, log.String())
		}
	}
}

// ready returns nil once the API server reports ready.
func (c *ControlPlane) ready(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c.Admin = config
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// Stop signals it to end, and waits until it has; if it takes too long, it is killed. It may be called again, and after Kill.
func (c *ControlPlane) Stop() {
	defer time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() }).Stop()
	c.end(syscall.SIGTERM)
}

// Kill ends it as a power cut would: nothing is written anymore.
func (c *ControlPlane) Kill() { c.end(syscall.SIGKILL) }

func (c *ControlPlane) end(signal syscall.Signal) {
	_ = c.cmd.Process.Signal(signal) // of one that has ended: nothing to do
	<-c.ended
}

// RestartAPIServer ends kube-apiserver, which was started with --restart-apiserver, as an upgrade of it would, and returns when another
// process of it is ready.
func (c *ControlPlane) RestartAPIServer(ctx context.Context) error {
	pid, err := c.apiServer()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end kube-apiserver: %w", err)
	}
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := c.apiServer()
		if err == nil && now != pid {
			if err = client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err == nil {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready again: %w", err)
		}
	}
}

// apiServer finds the process of kube-apiserver. Linux only.
func (c *ControlPlane) apiServer() (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that has ended: nothing
		for pid := range strings.FieldsSeq(string(text)) {
			if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && bytes.Contains(line, []byte("\x00kube-apiserver\x00")) {
				return strconv.Atoi(pid)
			}
		}
	}
	return 0, errors.New("kube-apiserver does not run as a process of its own")
}
