package node

import (
	"bytes"
	"os"
	"strings"
	"sync"
)

// logFilter passes what a part prints on to stderr, line by line, without what is only information, and nothing while the part
// is being stopped: it then reports the end of each of its connections as an error. It remembers the last line, which shows
// why a part ended.
type logFilter struct {
	stopping <-chan struct{}

	mu   sync.Mutex
	rest []byte
	last string
}

func (f *logFilter) Write(data []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.stopping:
		return len(data), nil
	default:
	}
	f.rest = append(f.rest, data...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	var passed []byte
	for line := range bytes.Lines(f.rest[:end]) {
		if informational(line) {
			continue
		}
		passed = append(passed, line...)
		if text := bytes.TrimSpace(line); len(text) > 0 {
			f.last = string(text)
		}
	}
	f.rest = append(f.rest[:0], f.rest[end:]...)
	if len(passed) > 0 {
		// The reader of stderr may be gone; the part must not stop for that.
		_, _ = os.Stderr.Write(passed)
	}
	return len(data), nil
}

func (f *logFilter) lastLine() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == "" {
		return ""
	}
	return ": " + strings.TrimPrefix(f.last, "credence-devcluster: ")
}

// informational is such as "I0102 15:04:05.000000    1234 server.go:56] all is well", and of containerd such as
// "time=… level=info msg=…".
func informational(line []byte) bool {
	if bytes.HasPrefix(line, []byte("time=")) {
		return bytes.Contains(line, []byte(" level=info "))
	}
	if len(line) < 6 || line[0] != 'I' || line[5] != ' ' {
		return false
	}
	for _, digit := range line[1:5] {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return true
}
