package node

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The instances of the user are left alone: programs that run beside this test need them.
func TestCheckWatches(t *testing.T) {
	if err := checkWatches(1, openWatches); err != nil {
		t.Errorf("one is wanted: %v", err)
	}
	left := 3
	open := func() (int, error) {
		if left--; left < 0 {
			return -1, unix.EMFILE
		}
		return openWatches()
	}
	err := checkWatches(24, open)
	if err == nil || !strings.Contains(err.Error(), "24 inotify instances more than are left") || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=") {
		t.Errorf("more are wanted than are left: %v", err)
	}
}
