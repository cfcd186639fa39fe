package e2e_test

import (
	"flag"
	"os/exec"
	"sync"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
)

// Tests run side by side: what most of them do is wait. A test that begins with neither inTurn, withPlane nor t.Parallel changes what
// others on the shared plane see, and runs before them.
var (
	turns   = make(chan struct{}, 4)
	starts  = make(chan struct{}, 2)
	watches = newBudget(128 - ofPlane)
)

// The shares of planes and clusters in the inotify instances of a user, which are 128 on many machines. A plane is given more than it holds
// (watchesOfAPlane), which bounds the memory that planes have at once: a gigabyte for each.
const (
	ofPlane   = 22
	ofCluster = 8
	ofNode    = 24 // beside those of its plane
)

// sideBySide leaves it to inTurn and withPlane how many tests run at once.
func sideBySide() error { return flag.Set("test.parallel", "1000") }

// inTurn lets a test on the shared plane run beside others, a few at a time. Tests that wait for minutes call t.Parallel in its place,
// and begin at once.
func inTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// withPlane is inTurn for a test that starts a plane of its own.
func withPlane(t *testing.T) {
	t.Helper()
	t.Parallel()
	watches.take(t, ofPlane, false)
}

// withCluster is inTurn for a test that starts a cluster beside the shared plane.
func withCluster(t *testing.T) {
	t.Helper()
	t.Parallel()
	watches.take(t, ofCluster, false)
}

// first is withPlane for tests that take longest.
func first(t *testing.T, n int) {
	t.Helper()
	t.Parallel()
	watches.take(t, n, true)
}

// budget is something that tests share until they end.
type budget struct {
	changed *sync.Cond
	left    int
	firsts  int // that wait
}

func newBudget(n int) *budget { return &budget{changed: sync.NewCond(&sync.Mutex{}), left: n} }

// take waits until n are left, and those have theirs that are to begin first.
func (b *budget) take(t *testing.T, n int, first bool) {
	b.changed.L.Lock()
	defer b.changed.L.Unlock()
	if first {
		b.firsts++
	}
	for b.left < n || !first && b.firsts > 0 {
		b.changed.Wait()
	}
	if first {
		b.firsts--
	}
	b.give(-n)
	t.Cleanup(func() {
		b.changed.L.Lock()
		defer b.changed.L.Unlock()
		b.give(n)
	})
}

func (b *budget) give(n int) {
	b.left += n
	b.changed.Broadcast()
}

// starting bounds how many planes and clusters start at once: a start takes ten seconds of processor time, and must not take minutes.
func starting(t *testing.T) (started func()) {
	starts <- struct{}{}
	started = sync.OnceFunc(func() { <-starts })
	t.Cleanup(started)
	return started
}

// up runs credence up.
func up(t *testing.T, args ...string) {
	t.Helper()
	defer starting(t)()
	if out, err := exec.CommandContext(t.Context(), program("credence"), append([]string{"up", "--detach"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
}

// startCluster starts a control plane, and stops it when the test ends.
func startCluster(t *testing.T, dir string, args ...string) *controlplane.ControlPlane {
	t.Helper()
	defer starting(t)()
	cluster, err := controlplane.Start(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	return cluster
}
