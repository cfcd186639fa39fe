package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killAll kills the processes that have a variable in their environment. This process does not have it.
func killAll(variable string) error {
	for {
		files, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return err
		}
		killed := 0
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(append([]byte{0}, content...), []byte("\x00"+variable+"\x00")) {
				continue // it has ended, or belongs to another user
			}
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
		if killed == 0 {
			return nil
		}
	}
}

// unmountBelow unmounts what is mounted in a folder, the last mount first.
func unmountBelow(folder string) error {
	content, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var failed error
	lines := strings.Split(string(content), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if fields := strings.Fields(lines[i]); len(fields) > 1 && strings.HasPrefix(fields[1], folder+"/") {
			failed = errors.Join(failed, syscall.Unmount(fields[1], syscall.MNT_DETACH))
		}
	}
	return failed
}
