package up

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/internal/app/up/progress"
	"github.com/credence-id/credence/test/testkit"
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

// A start reports that too few are left, and goes on.
func TestAStartReportsFewInotifyInstances(t *testing.T) {
	l := newLaptop(t)
	testkit.Must(t, l.dir.Prepare())
	var shown bytes.Buffer
	r := &run{
		installation: installation{dir: l.dir}, tracker: progress.NewTracker(progress.NewLines(&shown), time.Now),
		watches: func() error {
			return checkWatches(watchesOfAPlane, func() (int, error) { return 0, unix.EMFILE }, unix.Close)
		},
	}
	if err := r.prepare(t.Context(), l.port); err != nil || !strings.Contains(shown.String(), "inotify instances, and 0 are left") {
		t.Errorf("%v, shown: %s", err, shown.String())
	}
}
