package login_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// The fixtures that all tests share: each is started by the first test that needs it, and ends with the last.
var (
	sharedProvider = sync.OnceValues(startProvider)
	sharedBrowser  = sync.OnceValues(startBrowser)
	sharedCluster  = sync.OnceValues(startCluster)
	scratch        string

	stopping sync.Mutex
	stops    []func()
)

// atEnd stops something when the last test is over, the last that was started first.
func atEnd(stop func()) {
	stopping.Lock()
	defer stopping.Unlock()
	stops = append(stops, stop)
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "login-"); err != nil {
		fmt.Fprintln(os.Stderr, "login:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	defer func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}()
	return m.Run()
}
