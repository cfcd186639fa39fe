package credential

import (
	"fmt"
	"net"
)

// maxStatus bounds a line of text for the service manager.
const maxStatus = 500

// service is the service manager that has started this program, or nil.
type service struct{ *net.UnixConn }

// notifySocket connects to the service manager, as sd_notify(3) has it. A name that begins with @ is abstract.
func notifySocket(environment func(string) string) (service, error) {
	name := environment("NOTIFY_SOCKET")
	if name == "" {
		return service{}, nil
	}
	connection, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return service{}, fmt.Errorf("connect to the service manager of NOTIFY_SOCKET: %w", err)
	}
	return service{connection}, nil
}

// send sends one notification. A service manager that does not listen any more is not needed.
func (s service) send(text string) {
	if s.UnixConn != nil {
		_, _ = s.Write([]byte(text))
	}
}
