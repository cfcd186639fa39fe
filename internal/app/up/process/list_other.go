//go:build unix && !linux

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func list() ([]Running, error) {
	output, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	return parse(string(output)), nil
}

// Describe returns what is known of a process; ok is false if it has ended.
func Describe(pid int) (r Running, ok bool) {
	output, err := exec.Command("ps", "-ww", "-o", "pid=,command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return Running{}, false
	}
	if all := parse(string(output)); len(all) == 1 {
		return all[0], true
	}
	return Running{}, false
}

// parse splits arguments at spaces: ps does not tell where one with a space in it ends.
func parse(output string) []Running {
	var all []Running
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil || pid == os.Getpid() {
			continue
		}
		all = append(all, Running{PID: pid, Program: filepath.Base(fields[1]), Arguments: fields[1:]})
	}
	return all
}

func zombie(pid int) bool {
	output, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(output)), "Z")
}
