package node

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// watchesOfANode is how many inotify instances the programs of a node hold, and some to spare: without one, containerd runs but
// offers no service to the kubelet.
const watchesOfANode = 16

func openWatches() (int, error) { return unix.InotifyInit1(unix.IN_CLOEXEC) }

// checkWatches returns an error with what to do if the user has too few inotify instances left (inotify(7)); open opens one.
func checkWatches(wanted int, open func() (int, error)) error {
	for range wanted {
		instance, err := open()
		if errors.Is(err, unix.EMFILE) {
			limit, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
			return fmt.Errorf("a node needs %d inotify instances more than are left of the %s that this user may have: stop what holds them, or allow more with: sysctl fs.inotify.max_user_instances=512",
				wanted, strings.TrimSpace(string(limit)))
		}
		if err != nil {
			return fmt.Errorf("look for inotify instances: %w", err)
		}
		defer func() { _ = unix.Close(instance) }()
	}
	return nil
}
