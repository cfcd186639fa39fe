package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// listen takes a port before anything is started, so that no other program takes it
// meanwhile. flag is the flag by which the user can choose another.
func listen(port int, flag string) (*net.TCPListener, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of 127.0.0.1 is in use: stop the program that listens there, or choose another port with %s", port, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: choose another port with %s", err, flag)
	}
	return listener.(*net.TCPListener), nil
}
