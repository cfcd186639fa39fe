//go:build unix

package process

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// CheckPort is an error if nothing can listen on a TCP port of 127.0.0.1; it names who does, where that can be known.
func CheckPort(port int, purpose string) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		return listener.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d of 127.0.0.1, needed for %s, cannot be used: %w", port, purpose, err)
	}
	who := "another program"
	if r, ok := listenerOf(port); ok {
		who = fmt.Sprintf("%s: %s", r, shorten(strings.Join(r.Arguments, " "), 160))
	}
	return fmt.Errorf("port %d of 127.0.0.1, needed for %s, is taken by %s; end it, or choose another --dir and --port", port, purpose, who)
}
