package node

import (
	"strings"
	"testing"
)

func TestCheckWatches(t *testing.T) {
	if err := checkWatches(0); err != nil {
		t.Errorf("none are wanted: %v", err)
	}
	// More than any limit that systems are shipped with; those that were taken are given back.
	err := checkWatches(1 << 20)
	if err == nil || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=") {
		t.Errorf("a million are wanted: %v", err)
	}
}
