package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// watchesOfAPlane is what docs/reference/command-line.md promises.
const watchesOfAPlane = 12

func TestPlaneInotifyInstances(t *testing.T) {
	p := alone(t)
	total := 0
	for pid, command := range processesOf(t, p.Dir) {
		files := need(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)))(t)
		count := 0
		for _, file := range files {
			if target, _ := os.Readlink(file); target == "anon_inode:inotify" {
				count++
			}
		}
		total += count
		if count > 1 && !strings.Contains(command, "credence-devcluster") {
			t.Errorf("%d inotify instances, want at most one: %s", count, command)
		}
	}
	if total == 0 || total > watchesOfAPlane {
		t.Errorf("%d inotify instances, want at least one and at most %d", total, watchesOfAPlane)
	}
	t.Logf("%d inotify instances", total)
}
