package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/test/testkit"
)

func isBackoff(err error) bool {
	_, ok := errors.AsType[*execcredential.BackoffError](err)
	return ok
}

// While the program fails it runs once for each of its pauses, whatever the informer does; afterwards the informer goes on by itself.
func TestExecCredentialInformerAcrossAnOutageOfTheProgram(t *testing.T) {
	inTurn(t)
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
	f.awaitError("the failure", func(err error) bool {
		exit, ok := errors.AsType[*execcredential.ExitError](err)
		return ok && !isBackoff(err) && exit.Stderr == "no network"
	})
	f.awaitError("the pause", isBackoff)
	ran(t, program, 2)
	broken.Store(false)
	clock.Advance(time.Minute)
	f.has("in-the-outage")
	w.add("after")
	f.has("after")
	f.ends(program, w.robot(), 3, 3, 0)
}

// A killed API server does not cause a run of the program. If the credential expires meanwhile, and the program needs the server
// too, it fails, is left alone, and the informer goes on when both are back.
func TestPlaneExecCredentialInformerAcrossAnOutageOfTheServer(t *testing.T) {
	withCluster(t)
	port := need(testkit.FreePorts(portsPerPlane))(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	cluster := startCluster(t, dir, "--port", fmt.Sprint(port))
	w := newExecWorld(t, cluster.Admin, dir)
	clock := exectest.NewClock(time.Now())
	program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return w.answerToken("", clock.Now().Add(time.Hour)) })
	f := w.follow(w.config(execPool(t, execcredential.Options{Clock: clock}), program.Config()))
	w.add("before")
	f.has("before")

	cluster.Kill()
	before := f.asked()
	eventually(t, func() error {
		if got := f.asked(); got == before {
			return errors.New("the informer sends no request while the server is gone")
		}
		return nil
	})
	ran(t, program, 1)
	clock.Advance(time.Hour)
	ran(t, program, 2)
	f.awaitError("the pause", isBackoff)
	startCluster(t, dir, "--port", fmt.Sprint(port))
	w.add("meanwhile")
	ran(t, program, 2)
	clock.Advance(time.Minute)
	f.has("before", "meanwhile")
	w.add("after")
	f.has("after")
	f.ends(program, w.robot(), 3, 3, 0)
}
