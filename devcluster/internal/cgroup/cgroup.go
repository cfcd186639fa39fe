//go:build linux

package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unifiedControllers are what pods are limited by in a unified hierarchy (cgroup v2).
const unifiedControllers = "cpu cpuset io memory pids hugetlb"

// Ensure makes the group name in every hierarchy.
func Ensure(name string) error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	// Beside others a unified hierarchy has no controllers, and the runtime makes what it needs there by itself.
	if slices.ContainsFunc(mounts, func(m hierarchy) bool { return !m.unified }) {
		mounts = slices.DeleteFunc(mounts, func(m hierarchy) bool { return m.unified })
	}
	if len(mounts) == 0 {
		return errors.New("no control groups are mounted below /sys/fs/cgroup: a node needs them")
	}
	for _, m := range mounts {
		if m.unified {
			// Each alone: the kernel refuses all of a list for one that it does not have, or that is in use elsewhere.
			for controller := range strings.FieldsSeq(unifiedControllers) {
				_ = os.WriteFile(filepath.Join(m.path, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			}
		}
		if err := os.Mkdir(filepath.Join(m.path, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make control group: %w: a node needs control groups that can be written to", err)
		}
	}
	return nil
}

// Remove kills every process in the group name and below, and removes it. A group that is not there is no error.
func Remove(ctx context.Context, name string) error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := remove(ctx, filepath.Join(m.path, name)); err != nil {
			return err
		}
	}
	return nil
}

func remove(ctx context.Context, group string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := removeOnce(group)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("remove control group: %w", err)
		}
	}
}

func removeOnce(group string) error {
	var groups []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != group {
			return nil
		}
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range groups {
		for _, pid := range members(path) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	slices.Reverse(groups)
	for _, path := range groups {
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "rmdir", Path: path, Err: err}
		}
	}
	return nil
}

func members(group string) []int {
	content, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.FieldsSeq(string(content)) {
		// 0 is a process that this one cannot see, and means its own group to kill(2).
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

type hierarchy struct {
	path    string
	unified bool
}

// hierarchies reads where control groups are mounted (proc_pid_mountinfo(5)).
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	defer file.Close()
	return hierarchiesOf(file)
}

func hierarchiesOf(mounts io.Reader) ([]hierarchy, error) {
	var found []hierarchy
	scanner := bufio.NewScanner(mounts)
	for scanner.Scan() {
		before, after, _ := strings.Cut(scanner.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(fields[4], "/sys/fs/cgroup") {
			continue
		}
		switch kind, _, _ := strings.Cut(after, " "); kind {
		case "cgroup":
			found = append(found, hierarchy{path: fields[4]})
		case "cgroup2":
			found = append(found, hierarchy{path: fields[4], unified: true})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	return found, nil
}
