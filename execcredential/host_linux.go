package execcredential

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// attributes put a program into a session, and so a process group, of its own: it has no terminal, and gets an error instead of being
// stopped when it reads from one. It no longer gets the signals of the terminal either, so it is ended together with this process.
func attributes(own bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: own, Pdeathsig: syscall.SIGTERM}
}

// systemLimits are those of execve(2): 32 pages for each string, and a quarter of the stack, at most 6 MiB, for all.
func systemLimits() limits {
	l := limits{each: 32*os.Getpagesize() - 1, total: 6 << 20}
	var stack syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &stack); err == nil && stack.Cur/4 < uint64(l.total) {
		l.total = max(int(stack.Cur/4), 128<<10)
	}
	return l
}

// descendants are the processes that pid started, and those that they started; and those that have mark in their environment, as a process
// has that was started by one which has ended since.
func descendants(pid int, mark string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	var marked []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// "pid (name) state ppid …"; a name may hold anything, parentheses too.
		if fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(fields) > 1 {
			if parent, err := strconv.Atoi(string(fields[1])); err == nil {
				children[parent] = append(children[parent], child)
			}
		}
		if environ, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && bytes.Contains(environ, []byte(mark)) {
			marked = append(marked, child)
		}
	}
	known := map[int]bool{pid: true}
	var all []int
	for todo := append(marked, children[pid]...); len(todo) > 0; todo = todo[1:] {
		if known[todo[0]] {
			continue
		}
		known[todo[0]] = true
		all = append(all, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return all
}
