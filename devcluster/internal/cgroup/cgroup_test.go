//go:build linux

package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHierarchiesOfMounts(t *testing.T) {
	for name, test := range map[string]struct {
		mounts []string
		want   []hierarchy
	}{
		"unified": {[]string{
			"24 30 0:22 / /proc rw,nosuid - proc proc rw",
			"35 28 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
		}, []hierarchy{{"/sys/fs/cgroup", true}}},
		"beside others": {[]string{
			"36 35 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
			"37 35 0:33 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 master:2 - cgroup cgroup rw,cpu,cpuacct",
		}, []hierarchy{{"/sys/fs/cgroup/unified", true}, {"/sys/fs/cgroup/cpu,cpuacct", false}}},
		"elsewhere": {[]string{"37 35 0:33 / /mnt/cgroup rw - cgroup cgroup rw", "35 28 0:31 / /sys/fs/cgroup rw - tmpfs tmpfs rw", "short"}, nil},
	} {
		got, err := hierarchiesOf(strings.NewReader(strings.Join(test.mounts, "\n")))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
}

// All processes of the group and below are killed; one that this process can't see is 0, which must not be taken for its own group.
func TestRemoveKillsTheMembers(t *testing.T) {
	group := t.TempDir()
	pod := filepath.Join(group, "pod", "container")
	if err := os.MkdirAll(pod, 0o755); err != nil {
		t.Fatal(err)
	}
	member := exec.CommandContext(t.Context(), "sleep", "600")
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(pod, "cgroup.procs")
	if err := os.WriteFile(file, fmt.Appendf(nil, "0\n%d\n", member.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	// A plain folder with a file in it can't be removed, as a group with processes.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := remove(ctx, group); err == nil || !strings.Contains(err.Error(), "remove control group: rmdir "+pod) {
		t.Errorf("a group with processes: %v", err)
	}
	if err := member.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the member: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := remove(t.Context(), group); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(group); !os.IsNotExist(err) {
		t.Errorf("the group is there: %v", err)
	}
	if err := remove(t.Context(), group); err != nil {
		t.Errorf("a group that is not there: %v", err)
	}
}

// No group of the machine has the name.
func TestRemoveNothing(t *testing.T) {
	if err := Remove(t.Context(), "credence-of-no-cluster"); err != nil {
		t.Error(err)
	}
}
