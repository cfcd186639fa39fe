//go:build linux

package credential

import (
	"bytes"
	"os"
	"strconv"
)

// started is the start of a process, in ticks since the start of the system; empty if it cannot be read.
func started(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is a name that may hold anything; the start time is field 22.
	const startTime = 22 - 3
	if fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(fields) > startTime {
		return string(fields[startTime])
	}
	return ""
}

// program is the program of a process. kubectl of the Google Cloud SDK requests once, and then execs the kubectl of the server's version.
func program(pid int) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return ""
	}
	return word(path)
}
