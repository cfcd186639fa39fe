//go:build linux

package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kill ends at once what is left of containerd, and of the shims between it and containers, with this folder. Containers
// may outlive it: their control group is the way to them.
func Kill(ctx context.Context, folder string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		left, err := processes(folder)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("processes %v of containerd do not end, not even when killed", left)
		}
	}
}

// RemoveState removes what containerd keeps of what runs, nothing of which may run any more. Images stay.
func RemoveState(folder string) error {
	if err := os.RemoveAll(stateFolder(folder)); err != nil {
		return fmt.Errorf("remove containerd's state: %w", err)
	}
	return nil
}

// processes are those of containerd's programs whose arguments name the configuration or the socket in folder.
func processes(folder string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	own := []string{Socket(folder), Settings{Folder: folder}.configFile()}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A zombie has no arguments any more.
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue
		}
		arguments := strings.Split(string(line), "\x00")
		if strings.HasPrefix(filepath.Base(arguments[0]), "containerd") && slices.ContainsFunc(arguments, func(a string) bool { return slices.Contains(own, a) }) {
			found = append(found, pid)
		}
	}
	return found, nil
}
