package up

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFewInotifyInstances(t *testing.T) {
	opened, shut := 0, 0
	open := func() (int, error) {
		if opened == 3 {
			return 0, unix.EMFILE
		}
		opened++
		return opened, nil
	}
	closing := func(int) error { shut++; return nil }
	err := checkWatches(4, open, closing)
	if err == nil || !strings.Contains(err.Error(), "holds 4 inotify instances, and 3 are left") || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=") {
		t.Errorf("error %v", err)
	}
	if opened, shut = 0, 0; checkWatches(3, open, closing) != nil || shut != 3 {
		t.Errorf("three of three: %d closed", shut)
	}
}
