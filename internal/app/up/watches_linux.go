package up

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// watchesOfAPlane is how many inotify instances a plane holds at most without a node, nearly all of them those of kube-apiserver and
// kube-controller-manager. test/e2e counts them.
const watchesOfAPlane = 12

// checkWatches returns an error if fewer inotify instances are left than wanted (inotify(7)); open opens one.
func checkWatches(wanted int, open func() (int, error), shut func(int) error) error {
	for left := range wanted {
		instance, err := open()
		if errors.Is(err, unix.EMFILE) {
			limit, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
			return fmt.Errorf("a plane holds %d inotify instances, and %d are left of the %s that this user may have: without them, new certificates are noticed late or not at all; stop what holds them, or allow more with: sysctl fs.inotify.max_user_instances=512",
				wanted, left, strings.TrimSpace(string(limit)))
		}
		if err != nil {
			return fmt.Errorf("look for inotify instances: %w", err)
		}
		defer func() { _ = shut(instance) }()
	}
	return nil
}

// watchesLeft returns an error if a plane would not get all that it holds.
func watchesLeft() error {
	open := func() (int, error) { return unix.InotifyInit1(unix.IN_CLOEXEC) }
	return checkWatches(watchesOfAPlane, open, unix.Close)
}
