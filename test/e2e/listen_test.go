package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sockets returns the inodes of all sockets that processes hold.
func sockets(t *testing.T, processes map[int]string) map[string]bool {
	t.Helper()
	inodes := map[string]bool{}
	for pid := range processes {
		files := need(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)))(t)
		for _, file := range files {
			target, err := os.Readlink(file)
			if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
				inodes[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return inodes
}

// table reads a table of sockets as the kernel prints it, a row a line without the heading.
func table(t *testing.T, path string) [][]string {
	t.Helper()
	file := need(os.Open(path))(t)
	defer file.Close()
	var rows [][]string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		rows = append(rows, strings.Fields(lines.Text()))
	}
	return rows[1:]
}

func TestPlaneEverythingListensOnLoopback(t *testing.T) {
	p := alone(t)
	processes := processesOf(t, p.Dir)
	if len(processes) < 4 {
		t.Fatalf("found %d processes of the plane only: %v", len(processes), processes)
	}
	own := sockets(t, processes)
	const listening, loopback = "0A", "0100007F:"
	count := 0
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, row := range table(t, path) {
			if local, state, inode := row[1], row[3], row[9]; state == listening && own[inode] {
				count++
				if path != "/proc/net/tcp" || !strings.HasPrefix(local, loopback) {
					t.Errorf("listens on %s of %s, which is not 127.0.0.1", local, path)
				}
			}
		}
	}
	if count < 4 {
		t.Errorf("found %d listening sockets only", count)
	}
	// A listening unix socket without a file is open to every process of the machine.
	const accepting = "00010000"
	for _, row := range table(t, "/proc/net/unix") {
		if flags, inode := row[3], row[6]; flags == accepting && own[inode] && (len(row) < 8 || strings.HasPrefix(row[7], "@")) {
			t.Errorf("listens on a unix socket that no file mode protects: %v", row)
		}
	}
}
