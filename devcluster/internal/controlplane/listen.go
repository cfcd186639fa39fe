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

// freePorts returns the first of n consecutive ports that no program listens on; first 0 stands for any. They are taken by
// processes of their own later, which cannot be handed listeners.
func freePorts(first, n int, flag string) (int, error) {
	if first != 0 {
		return first, tryPorts(first, n, flag)
	}
	var err error
	for range portAttempts {
		var listener *net.TCPListener
		if listener, err = listen(0, flag); err != nil {
			return 0, err
		}
		first = listener.Addr().(*net.TCPAddr).Port
		if err = listener.Close(); err != nil {
			return 0, fmt.Errorf("find %d free ports: %w", n, err)
		}
		if err = tryPorts(first, n, flag); err == nil {
			return first, nil
		}
	}
	return 0, err
}

// portAttempts is more than needed on a machine of which most ports are free.
const portAttempts = 20

func tryPorts(first, n int, flag string) error {
	for port := first; port < first+n; port++ {
		listener, err := listen(port, flag)
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("try port %d: %w", port, err)
		}
	}
	return nil
}
