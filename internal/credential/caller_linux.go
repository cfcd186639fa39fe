//go:build linux

package credential

import (
	"bytes"
	"os"
	"strconv"
)

// Parent is the process that started this one.
func Parent() Caller {
	caller := Caller{PID: os.Getppid()}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(caller.PID) + "/stat")
	if err != nil {
		return caller
	}
	// The second field is a name that may hold anything; the start time is field 22.
	const startTime = 22 - 3
	if fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(fields) > startTime {
		caller.Started = string(fields[startTime])
	}
	return caller
}
