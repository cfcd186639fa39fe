package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN in /proc/net/tcp.
const stateListen = "0A"

// listenerOf finds the process that listens on a port. Only processes of the same user can be looked into.
func listenerOf(port int) (Running, bool) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, inode := range listeningInodes(string(text), port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return Running{}, false
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return Running{}, false
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || !sockets[target] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		if r, ok := Describe(pid); ok {
			return r, true
		}
	}
	return Running{}, false
}

// listeningInodes reads the table of proc_pid_net(5): local address in field 2, state in 4, inode in 10.
func listeningInodes(table string, port int) []string {
	suffix := fmt.Sprintf(":%04X", port)
	var inodes []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == stateListen {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
