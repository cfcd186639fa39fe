package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
)

// Tests run side by side: what most of them do is wait. A test that changes what others on the shared plane see has the second plane for
// itself (alone), or one of its own.
var (
	turns   = make(chan struct{}, 6)
	starts  = make(chan struct{}, 2)
	apart   = make(chan struct{}, 1)
	watches = newBudget(min(128-2*ofPlane-ofOthers, max(memory()*ofPlane, 2*ofPlane+ofNode)))
)

// The shares of planes and clusters in the inotify instances of a user, which are 128 on many machines. Planes need memory, too: a gigabyte
// is enough for each.
const (
	ofPlane   = 12
	ofCluster = 11
	ofNode    = 16 // beside those of its plane
	ofOthers  = 36 // of other packages of tests that run beside these

	// urgent is in place of minutes where others wait for a test that is in line.
	urgent = 60
)

// memory returns how many gigabytes are available, and many where that is not known.
func memory() int {
	const many = 1 << 10
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return many
	}
	for line := range strings.Lines(string(content)) {
		var kilobytes int
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil {
			return kilobytes >> 20
		}
	}
	return many
}

// apartName begins the names of tests that change what others see, or start a plane, a cluster or a node. make test leaves them out by
// their names, and make test-all runs them.
var apartName = regexp.MustCompile(`^Test(Plane|Node)`)

func needsApartName(t *testing.T) {
	t.Helper()
	if !apartName.MatchString(t.Name()) {
		t.Fatalf("%s does not share a plane: its name must match %s", t.Name(), apartName)
	}
}

// sideBySide leaves it to inTurn and withPlane how many tests run at once.
func sideBySide() error { return flag.Set("test.parallel", "1000") }

// inTurn lets a test on the shared plane run beside others, a few at a time. Tests that wait for minutes call t.Parallel in its place,
// and begin at once.
func inTurn(t *testing.T) {
	t.Helper()
	if apartName.MatchString(t.Name()) {
		t.Fatalf("%s shares a plane: its name must not match %s", t.Name(), apartName)
	}
	t.Parallel()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// alone gives a test the second plane, on which one test runs after the other, and which is left as it was.
func alone(t *testing.T) plane {
	t.Helper()
	needsApartName(t)
	t.Parallel()
	apart <- struct{}{}
	t.Cleanup(func() { <-apart })
	defer starting(t)()
	p := need(second.start())(t)
	return p
}

// aloneWithPlane is alone for a test that starts a plane, too.
func aloneWithPlane(t *testing.T) plane {
	t.Helper()
	p := alone(t)
	watches.take(t, watches.enter(ofPlane, urgent))
	return p
}

// withPlane is inTurn for a test that starts a plane of its own.
func withPlane(t *testing.T) {
	t.Helper()
	first(t, ofPlane, 0)
}

// withCluster is inTurn for a test that starts a cluster beside the shared plane.
func withCluster(t *testing.T) {
	t.Helper()
	first(t, ofCluster, 0)
}

// first is withPlane for tests that take long: those that take most minutes begin first.
func first(t *testing.T, n, minutes int) {
	t.Helper()
	needsApartName(t)
	place := watches.enter(n, minutes) // all are in line when the first of them begins
	t.Parallel()
	watches.take(t, place)
}

// budget is something that tests share until they end. They wait in line for it, each for so much as it needs.
type budget struct {
	changed *sync.Cond
	left    int
	line    []*place
}

// place is one in the line.
type place struct{ n, minutes int }

func newBudget(n int) *budget { return &budget{changed: sync.NewCond(&sync.Mutex{}), left: n} }

// enter takes the place behind all tests that take as long or longer.
func (b *budget) enter(n, minutes int) *place {
	b.changed.L.Lock()
	defer b.changed.L.Unlock()
	mine := &place{n, minutes}
	at := slices.IndexFunc(b.line, func(other *place) bool { return other.minutes < minutes })
	if at < 0 {
		at = len(b.line)
	}
	b.line = slices.Insert(b.line, at, mine)
	return mine
}

// take waits until a test is the first in line, and there is left what it needs.
func (b *budget) take(t *testing.T, mine *place) {
	b.changed.L.Lock()
	defer b.changed.L.Unlock()
	for b.line[0] != mine || b.left < mine.n {
		b.changed.Wait()
	}
	b.line = b.line[1:]
	b.give(-mine.n)
	t.Cleanup(func() {
		b.changed.L.Lock()
		defer b.changed.L.Unlock()
		b.give(mine.n)
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
	cluster := need(controlplane.Start(t.Context(), dir, args...))(t)
	t.Cleanup(cluster.Stop)
	return cluster
}
