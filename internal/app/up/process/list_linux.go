package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func list() ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Running
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if r, ok := Describe(pid); ok {
			all = append(all, r)
		}
	}
	return all, nil
}

// Describe returns what is known of a process; ok is false if it has ended.
func Describe(pid int) (r Running, ok bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(line) == 0 {
		return Running{}, false
	}
	arguments := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	program := filepath.Base(arguments[0])
	// The executable does not depend on argv[0]; it is readable for processes of the same user only.
	if target, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		program = filepath.Base(strings.TrimSuffix(target, " (deleted)"))
	}
	return Running{PID: pid, Program: program, Arguments: arguments}, true
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the program's name, which is in parentheses and may itself hold some (proc_pid_stat(5)).
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'Z'
}
