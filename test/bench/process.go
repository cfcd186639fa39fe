package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuOf returns the CPU time that processes have used since they were started, in their code and in the kernel's for them.
func cpuOf(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		used, err := processClock(pid)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		sum += used
	}
	return sum, nil
}

// residentMB returns the memory that a process holds, files that are mapped included.
func residentMB(pid int) (float64, error) { return statusMB(pid, "VmRSS:") }

// anonymousMB returns the memory that a process holds without files that are mapped: how much of a program is in memory depends
// on what of it has run, and on nothing that it holds.
func anonymousMB(pid int) (float64, error) { return statusMB(pid, "RssAnon:") }

func statusMB(pid int, field string) (float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read resident memory, which needs Linux: %w", err)
	}
	for line := range bytes.Lines(content) {
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == field {
			kilobytes, err := strconv.Atoi(fields[1])
			return float64(kilobytes) / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no resident memory", pid)
}

// childrenOf returns the processes that a process started.
func childrenOf(pid int) ([]int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var list []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(content)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			list = append(list, child)
		}
	}
	return list, nil
}
