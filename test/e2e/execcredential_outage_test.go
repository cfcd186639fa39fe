package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func isBackoff(err error) bool {
	_, ok := errors.AsType[*execcredential.BackoffError](err)
	return ok
}

// While the program fails it runs once for each of its pauses, whatever the informer does; afterwards the informer goes on by itself.
func TestExecCredentialInformerAcrossAnOutageOfTheProgram(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
	clock := exectest.NewClock(time.Now())
	var broken atomic.Bool
	program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		if broken.Load() {
			return exectest.Answer{ExitCode: 1, Stderr: "no network"}
		}
		return w.answerToken("", clock.Now().Add(time.Hour))
	})
	f := w.follow(w.config(execPool(t, execcredential.Options{Clock: clock}), program.Config()))
	w.add("before")
	f.has("before")

	broken.Store(true)
	clock.Advance(time.Hour)
	w.add("in-the-outage")
	f.told("the failure", func(err error) bool {
		exit, ok := errors.AsType[*execcredential.ExitError](err)
		return ok && !isBackoff(err) && exit.Stderr == "no network"
	})
	f.told("the pause", isBackoff)
	ran(t, program, 2)
	broken.Store(false)
	clock.Advance(time.Minute)
	f.has("in-the-outage")
	w.add("after")
	f.has("after")
	f.saw(3)
	ran(t, program, 3)
	if refused := w.nobodyElse(w.robot()); refused != 0 {
		t.Errorf("%d requests were answered with 401", refused)
	}
}

// loneCluster is a control plane of a test's own, to be killed.
type loneCluster struct {
	t    *testing.T
	dir  string
	port int
	kill func()
}

func (c *loneCluster) start() {
	c.t.Helper()
	cmd := exec.Command(program("credence-devcluster"), "--dir", c.dir, "--port", fmt.Sprint(c.port))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	c.kill = func() { _ = cmd.Process.Kill(); <-ended }
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	eventually(c.t, func() error {
		select {
		case <-ended:
			return fatal{fmt.Errorf("the cluster ended: %s", log.String())}
		default:
		}
		client, err := kubernetes.NewForConfig(c.admin())
		if err != nil {
			return err
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(c.t.Context()).Error()
	})
}

func (c *loneCluster) admin() *rest.Config {
	c.t.Helper()
	config := &rest.Config{}
	eventually(c.t, func() (err error) {
		config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "admin.kubeconfig"))
		return err
	})
	return config
}

// An API server that is killed is no reason to run the program. If the credential expires meanwhile, and the program needs the server
// too, it fails, is left alone, and the informer goes on when both are back.
func TestExecCredentialInformerAcrossAnOutageOfTheServer(t *testing.T) {
	t.Parallel()
	port, err := freePorts(portsPerPlane)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &loneCluster{t: t, dir: filepath.Join(t.TempDir(), "cluster"), port: port}
	cluster.start()
	w := newExecWorld(t, cluster.admin(), cluster.dir)
	clock := exectest.NewClock(time.Now())
	program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return w.answerToken("", clock.Now().Add(time.Hour)) })
	f := w.follow(w.config(execPool(t, execcredential.Options{Clock: clock}), program.Config()))
	w.add("before")
	f.has("before")

	cluster.kill()
	before := f.asked()
	eventually(t, func() error {
		if got := f.asked(); got == before {
			return errors.New("the informer asks for nothing while the server is gone")
		}
		return nil
	})
	ran(t, program, 1)
	clock.Advance(time.Hour)
	ran(t, program, 2)
	f.told("the pause", isBackoff)
	cluster.start()
	w.add("meanwhile")
	ran(t, program, 2)
	clock.Advance(time.Minute)
	f.has("before", "meanwhile")
	w.add("after")
	f.has("after")
	f.saw(3)
	ran(t, program, 3)
	if refused := w.nobodyElse(w.robot()); refused != 0 {
		t.Errorf("%d requests were answered with 401", refused)
	}
}
