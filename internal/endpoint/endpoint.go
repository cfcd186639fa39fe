package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
)

// Endpoint is a Socket or a Pipe.
type Endpoint interface {
	// Listen refuses a place where a process listens, and replaces what a dead one has left.
	Listen(ctx context.Context) (net.Listener, error)
	// Dial connects, for as long as ctx is not done.
	Dial(ctx context.Context) (net.Conn, error)
	// String is a form that Parse takes.
	String() string
}

// ErrListening is returned where another process listens.
var ErrListening = errors.New("another process listens there: stop it, or give another path")

// Parse reads an endpoint of the Container Runtime Interface: unix:///PATH or the path alone, and on Windows npipe:////./pipe/NAME, or the
// path of the pipe alone.
func Parse(text string) (Endpoint, error) { return parse(text, runtime.GOOS == "windows") }

func parse(text string, windows bool) (Endpoint, error) {
	scheme, place, found := strings.Cut(text, "://")
	switch {
	case found && scheme == "unix":
		return parseSocket(place)
	case found && scheme == "npipe" && windows:
		return parsePipe(text, place)
	case found && scheme == "npipe":
		return nil, fmt.Errorf("%s is a named pipe, and only Windows has those: give a unix socket, unix:///PATH or its path", text)
	case found && windows:
		return nil, fmt.Errorf("%s is neither a named pipe (npipe:////./pipe/NAME) nor a unix socket (its path)", text)
	case found:
		return nil, fmt.Errorf("%s is not a unix socket: give unix:///PATH or its path", text)
	case windows && strings.HasPrefix(strings.ReplaceAll(text, "/", `\`), pipes):
		return parsePipe(text, text)
	}
	return parseSocket(text)
}
